"""The join graph of a lake: components, places, edges."""
