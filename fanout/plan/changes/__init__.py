"""Changes of branches as sets: which sets there are to be, what of each stands, what holds it."""
