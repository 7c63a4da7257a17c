"""Pull requests as the hosts of repositories show them."""
