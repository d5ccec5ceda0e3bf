"""Pages for people: the calculator, recorded sizings and the documentation. Everything works without JavaScript."""
