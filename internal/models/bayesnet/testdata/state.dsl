net r {
node A { TYPE = TRUTHTABLE; HEADER = { ID = A; }; PARENTS = (); DEFINITION = { NAMESTATES = (u, v);
RESULTINGSTATES = (w); }; };
};
