"""The bundled example: a shop's orders, and three batches of changes. `make_orders` writes the files."""
