"""The embedded demo: a small network on handwritten digits, taken through every stage without a vendor's tool."""
