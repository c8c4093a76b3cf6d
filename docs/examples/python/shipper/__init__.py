"""Ships what buyers have paid: a small, complete integration with the seller API."""
