"""Tables that say once what a functional dependency says: BCNF and 3NF."""
