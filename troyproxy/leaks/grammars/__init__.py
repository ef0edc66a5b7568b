"""How each family writes a call as text, one module per shape. They know no schemas and no modes."""
