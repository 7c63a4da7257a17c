"""Three-way merge of packages (design §4, "Update is a three-way merge")."""
