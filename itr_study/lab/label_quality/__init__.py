"""How good labels are: label sources held against people, rankings and captions."""
