net plain
{
node A { TYPE = CPT; DEFINITION = { NAMESTATES = (u, v, w); PROBABILITIES = (0.5, 0.25, 0.25); }; };
}
