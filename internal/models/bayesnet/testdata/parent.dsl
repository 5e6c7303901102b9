net p {
node A { TYPE = CPT; HEADER = { ID = A; }; PARENTS = (Z); DEFINITION = { NAMESTATES = (u, v);
PROBABILITIES = (0.25, 0.75); }; };
};
