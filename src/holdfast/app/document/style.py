"""How the document looks: on screens in light and in the dark, and on paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --faint: #566373; --paper: #fff; --edge: #d5dde6;
  --bad: #b3261e; --good: #1b6e2f; --warn: #805300; --soft: #f3f6f9; --line: #3d7d9f; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde5ee; --faint: #a3b1c0; --paper: #12181f;
  --edge: #364454; --bad: #ff8a80; --good: #7fd493; --warn: #e8b84a; --soft: #1a232d; --line: #6cb3d6; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; font: 15px/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0; } h2 { margin: 2.4rem 0 0.6rem; font-size: 1.25rem; }
h3 { margin: 1.4rem 0 0.4rem; font-size: 1rem; } ul { padding-left: 1.2rem; margin: 0.4rem 0; }
p { margin: 0.4rem 0; } code { font-size: 0.92em; } a { color: inherit; }
.faint { color: var(--faint); } .bad { color: var(--bad); } .good { color: var(--good); }
table { border-collapse: collapse; } tbody tr { border-top: 1px solid var(--edge); }
th { font-weight: 600; } th, td { text-align: left; vertical-align: top; padding: 0.2em 0.8em 0.2em 0; }
.wide, .map { overflow-x: auto; } .wide td, .wide th { overflow-wrap: break-word; }
.log td:nth-child(-n + 3) { white-space: nowrap; }
section { border-top: 1px solid var(--edge); margin-top: 2rem; } section h2 { margin-top: 1rem; }
.words { display: flex; gap: 1.6rem; font-size: 1.1rem; } .words b { font-size: 1.7rem; }
.health { font-size: 0.85rem; font-weight: 600; white-space: nowrap; }
.broken .health, .health.broken, .word.broken { color: var(--bad); }
.health.drifting, .word.drifting { color: var(--warn); } .health.hold, .word.hold { color: var(--good); }
.health.unwatched, .word.unwatched { color: var(--faint); }
.trouble { border-left: 4px solid var(--warn); background: var(--soft); padding: 0.4rem 1rem; }
.trouble.broken { border-color: var(--bad); } .trouble + .trouble { margin-top: 0.8rem; }
.trouble h3 { margin-top: 0.2rem; }
.spark polyline { fill: none; stroke: var(--line); stroke-width: 1.4; }
.spark .broke, .timeline .broke, .life .not { fill: var(--bad); }
.timeline .appeared, .life .held { fill: var(--line); } .timeline line { stroke: var(--edge); }
.life .unknown { fill: none; stroke: var(--faint); stroke-dasharray: 3 3; }
.timeline, .life { display: block; max-width: 100%; height: auto; }
@media print { html { font-size: 11px; } body { max-width: none; padding: 0; font-size: 1rem; }
  h2, h3 { break-after: avoid; }
  .wide, .map { overflow: visible; } .wide table { width: 100%; font-size: 0.86rem; }
  .wide td, .wide th { overflow-wrap: anywhere; min-width: 3.7em; }
  .healths td:nth-child(2) { min-width: 8em; } .log td:nth-child(-n + 3) { white-space: normal; }
  .map svg { max-width: 100%; height: auto; }
  .trouble, tr { break-inside: avoid; } svg, .trouble { print-color-adjust: exact; } }
"""
