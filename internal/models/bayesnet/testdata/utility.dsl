net t {
node A { TYPE = CPT; HEADER = { ID = A; }; PARENTS = (); DEFINITION = { NAMESTATES = (u, v);
PROBABILITIES = (0.25, 0.75); }; };
node U { TYPE = TABLE; HEADER = { ID = U; }; PARENTS = (A); DEFINITION = { UTILITIES = (1, 2); }; };
};
