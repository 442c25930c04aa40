// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0
// Matching titles come first in the search, then lessons and guides before pages for developers.

var Scorer = {
  score: ([page, , , , score, , kind]) => {
    const rooms = { tutorials: 4, how_to: 3, cite: 3, explanation: 2, reference: 1, evidence: -4, internals: -4, changelog: -4 };
    if (page === "reference/glossary") return score - 85;  // after pages with the word in their title
    if (page.endsWith("/index")) score -= 5;
    return score + (rooms[page.split("/")[0]] ?? 0) + (kind === "title" ? 10 : 0);
  },
  // the values of Sphinx
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
