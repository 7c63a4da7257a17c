"""Pull requests of a pass: what their hosts show of them."""
