net order {
node B { TYPE = CPT; HEADER = { ID = B; }; PARENTS = (A); DEFINITION = { NAMESTATES = (u, v);
PROBABILITIES = (0.25, 0.75, 0.5, 0.5); }; };
node A { TYPE = CPT; HEADER = { ID = A; }; PARENTS = (); DEFINITION = { NAMESTATES = (u, v);
PROBABILITIES = (0.25, 0.75); }; };
};
