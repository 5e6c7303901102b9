// written for this project
net chest
{
 HEADER =
  {
   ID = chest;
   NAME = "Chest; {an example}";
   COMMENT = "several \
     lines, with \"quotes\"";
  };
 CREATION = { };
 NUMSAMPLES = 1000;
 SCREEN = { POSITION = { CENTER_X = 0; CENTER_Y = 0; WIDTH = 76; HEIGHT = 36; }; COLOR = 16250597; };
 node Smoker
  {
   TYPE = CPT;
   HEADER = { ID = Smoker; NAME = "Smoker?"; };
   PARENTS = ();
   DEFINITION =
    {
     NAMESTATES = (no, yes);
     PROBABILITIES = (0.70000000, 0.30000000);
    };
   EXTRA_DEFINITION = { RANKED = FALSE; FAULT_NAMES = ("", ""); DOCUMENTATION = { }; DOCUMENTATION = { }; };
  };
 node Tumour
  {
   TYPE = CPT;
   HEADER = { ID = Tumour; NAME = "Tumour"; };
   PARENTS = (Smoker);
   DEFINITION = { NAMESTATES = (absent, present); PROBABILITIES = (0.99, 0.01, 0.9, 0.1); };
  };
 node Infection
  {
   TYPE = CPT;
   HEADER = { ID = Infection; };
   PARENTS = ();
   DEFINITION = { NAMESTATES = (absent, mild, severe); PROBABILITIES = (0.8, 0.15, 0.05); };
  };
 node Shadow
  {
   TYPE = TRUTHTABLE;
   HEADER = { ID = Shadow; };
   PARENTS = (Tumour, Infection);
   DEFINITION =
    {
     NAMESTATES = (none, some);
     RESULTINGSTATES = (none, none, some,
     some, some, some);
    };
  };
 node Cough
  {
   TYPE = NOISY_MAX;
   HEADER = { ID = Cough; };
   PARENTS = (Infection, Smoker);
   DEFINITION =
    {
     NAMESTATES = (often, seldom);
     STRENGTHS = (2, 1, 0, 1, 0);
     PROBABILITIES = (0.9, 0.1, 0.5, 0.5, 0, 1, 0.3, 0.7, 0, 1, 0.05, 0.95);
    };
  };
};
