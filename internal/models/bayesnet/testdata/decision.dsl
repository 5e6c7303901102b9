net d {
node A { TYPE = CPT; HEADER = { ID = A; }; PARENTS = (); DEFINITION = { NAMESTATES = (u, v);
PROBABILITIES = (0.25, 0.75); }; };
node D { TYPE = LIST; HEADER = { ID = D; }; PARENTS = (A); DEFINITION = { NAMECHOICES = (go, stay); }; };
};
