"""The report's style sheet: one page for screens wide and narrow, light and dark, and for paper."""

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2127; --soft: #59636e; --line: #d5dae0; --panel: #f5f7f9;
  --link: #0b5cad; --passed: #1a7f37; --failed: #c62828; --skipped: #8a6100; --waiting: #59636e;
  --passed-fill: #e6f4ea; --failed-fill: #fdeaea; --skipped-fill: #fcf3dc; --waiting-fill: #eef1f4; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e4e8ec; --soft: #9aa5b1; --line: #333b45;
  --panel: #1c222a; --link: #7ab8ff; --passed: #56c271; --failed: #ff8078; --skipped: #e0b341; --waiting: #9aa5b1;
  --passed-fill: #16301e; --failed-fill: #3a1b1c; --skipped-fill: #33290f; --waiting-fill: #232a33; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 24px 20px 64px; max-width: 1040px; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC",
  sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.3; margin: 0 0 12px; unicode-bidi: isolate; }
h2 { font-size: 1.25rem; margin: 40px 0 12px; padding-top: 12px; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 24px 0 8px; } h4, h5, h6 { font-size: 1rem; margin: 16px 0 8px; }
p, li, td, dd, summary, figcaption { unicode-bidi: isolate; }
a { color: var(--link); text-underline-offset: 2px; } a.cite { text-decoration: none; font-size: .85em; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Noto Sans Mono", monospace; font-size: .88em; }
code { background: var(--panel); border-radius: 4px; padding: .1em .3em; }
pre { background: var(--panel); padding: 12px; border-radius: 6px; white-space: pre-wrap; } pre code { padding: 0; }
blockquote { margin: 8px 0; padding-left: 14px; border-left: 3px solid var(--line); color: var(--soft); }
ul, ol { padding-left: 1.4em; } li { margin: 4px 0; }
.badge { display: inline-block; white-space: nowrap; padding: 1px 10px; border-radius: 12px; border: 1.5px solid currentColor; font-weight: 600; }
.status { color: var(--soft); margin: 0 0 4px; } .status .badge { margin-right: 8px; }
.passed.badge, .completed.badge { color: var(--passed); } .failed.badge, .cancelled.badge { color: var(--failed); border-style: double; border-width: 3px; border-radius: 3px; }
.skipped.badge, .partial.badge { color: var(--skipped); border-style: dashed; }
.waiting.badge, .running.badge, .interrupted.badge { color: var(--waiting); border-style: dotted; }
nav { margin: 12px 0 0; font-size: .92rem; } nav a { margin-right: 14px; display: inline-block; padding: 2px 0; }
.note, .small { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; } #answer table { border-collapse: collapse; }
#answer td, #answer th { border: 1px solid var(--line); padding: 4px 8px; text-align: left; vertical-align: top; }
svg { display: block; max-width: 100%; height: auto; } svg.timeline, .narrow svg, .only svg { height: attr(height px); overflow: hidden; }
svg text { fill: var(--ink); font-size: 13px; } svg .name { font-weight: 600; } svg .note { fill: var(--soft); font-size: 12px; font-weight: 400; }
svg .edge { fill: none; stroke: var(--soft); stroke-width: 1.2; opacity: .75; } svg .head { fill: var(--soft); }
svg .passed { --on: var(--passed); --fill: var(--passed-fill); } svg .failed { --on: var(--failed); --fill: var(--failed-fill); }
svg .skipped { --on: var(--skipped); --fill: var(--skipped-fill); } svg .waiting { --on: var(--waiting); --fill: var(--waiting-fill); }
.graph .step rect, .graph .step circle, .graph .dot { fill: var(--fill); stroke: var(--on); stroke-width: 1.5; }
.graph .failed rect, .graph .failed .dot { stroke-width: 3; } .graph .skipped rect, .graph .skipped .dot { stroke-dasharray: 5 3; }
.graph .waiting rect, .graph .waiting .dot { stroke-dasharray: 1.5 3; } .step .note { fill: var(--on); }
.timeline .step rect { fill: var(--on); } .timeline .failed rect { fill: var(--fill); stroke: var(--on); stroke-width: 2; }
.timeline .wait { stroke: var(--soft); stroke-width: 1.5; } .timeline .tick { stroke: var(--line); stroke-width: 1; }
.timeline .pause rect { fill: var(--panel); }
.graph.narrow { display: none; }
.steps { width: 100%; border-collapse: collapse; font-size: .93rem; }
.steps th { white-space: nowrap; text-align: left; color: var(--soft); font-weight: 600; padding: 6px 10px 6px 0; border-bottom: 2px solid var(--line); }
.steps td { vertical-align: top; padding: 10px 10px 10px 0; border-bottom: 1px solid var(--line); }
.steps .id { font-weight: 700; } .steps td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.steps ul { list-style: none; margin: 0; padding: 0; } .steps td:nth-child(1) { width: 28%; } .steps td:nth-child(2) { width: 22%; }
.mark { font-weight: 700; } .met .mark { color: var(--passed); } .unmet .mark, .why { color: var(--failed); }
details { margin: 6px 0; } summary { cursor: pointer; color: var(--link); }
.finding { white-space: pre-wrap; font-size: .9rem; background: var(--panel); border-radius: 6px; padding: 10px; margin: 6px 0; }
.sources { list-style: none; padding: 0; } .sources li { margin: 0 0 16px; padding-left: 3.2em; position: relative; }
.sources .n { position: absolute; left: 0; font-weight: 700; } .sources li:target { background: var(--panel); outline: 8px solid var(--panel); border-radius: 2px; }
.excerpt { white-space: pre-wrap; margin: 4px 0 0; color: var(--soft); font-size: .9rem; border-left: 3px solid var(--line); padding-left: 10px; unicode-bidi: isolate; }
.budgets { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin: 0; padding: 0; list-style: none; }
.budgets li { background: var(--panel); border-radius: 8px; padding: 10px 12px; margin: 0; } .budgets b { display: block; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.bar { height: 6px; border-radius: 3px; background: var(--line); margin-top: 6px; overflow: hidden; } .bar i { display: block; height: 100%; background: var(--link); }
.bar .spent { background: var(--failed); } .roles { border-collapse: collapse; margin-top: 14px; font-size: .92rem; }
.roles th, .roles td { text-align: left; padding: 3px 16px 3px 0; font-variant-numeric: tabular-nums; } .roles th { color: var(--soft); font-weight: 600; }
.roles th, .roles td:not(:nth-child(2)) { overflow-wrap: normal; } .roles td { vertical-align: top; } .roles td:nth-child(2) { min-width: 8em; }
@media screen and (max-width: 760px) { body { padding: 16px 14px 48px; } h1 { font-size: 1.3rem; }
  .graph.wide { display: none; } .graph.narrow { display: block; }
  .steps, .steps tbody, .steps tr, .steps td { display: block; width: auto !important; } .steps thead { display: none; }
  .steps tr { border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; margin: 0 0 12px; }
  .steps td { border: 0; padding: 4px 0; }
  .steps td.number { display: inline-block; margin-right: 16px; } .steps td.number::before { content: attr(data-label) " "; color: var(--soft); }
  .steps td:empty, .steps td.number:empty { display: none; } .roles td, .roles th { padding-right: 10px; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --panel: #f4f4f4; --link: #000;
  --passed: #14632b; --failed: #a11; --skipped: #6b4b00; --waiting: #444; --passed-fill: #fff; --failed-fill: #fff; --skipped-fill: #fff; --waiting-fill: #fff; }
  body { font-size: 10.5pt; padding: 0; max-width: none; } nav { display: none; } h2, h3 { break-after: avoid; }
  .sources li, .steps tr, .budgets li { break-inside: avoid; }
  .steps details:not([open]) { display: none; } header details::details-content { content-visibility: visible; block-size: auto; }
  svg, .bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
""".strip()
