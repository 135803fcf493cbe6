"""Generated attacks: from one good case every mutation of the threat catalogue, single and in pairs."""
