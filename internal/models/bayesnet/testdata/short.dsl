net s {
node A { TYPE = CPT; HEADER = { ID = A; }; PARENTS = (); DEFINITION = { NAMESTATES = (u, v);
PROBABILITIES = (0.25); }; };
};
