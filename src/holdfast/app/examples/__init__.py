"""The bundled example: a shop's orders, customers, products and parcels, and seven batches of changes.

`make_orders` writes the files and says what is in them; `tables/` is a small lake. `holdfast.app.demo` is the
tour through them.
"""
