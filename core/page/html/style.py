"""The looks of the page, light and dark, wide and narrow; and its script.

The script loads the page anew every half minute, if the reader wants that. All else works without it.
"""

from typing import Final

STYLE: Final = """\
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --head: #f6f8fa;
  --link: #0550ae; --track: #d8dee4; --used: #1f6feb; --reserved: #8250df; --over: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --soft: #9aa4af; --line: #30363d;
  --head: #161b22; --link: #79c0ff; --track: #30363d; --used: #4493f8; --reserved: #c297ff; --over: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
header, main, footer { max-width: 84rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 1rem 0 .2rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
p { margin: .2rem 0; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--back); padding: .3rem .6rem; }
.note, footer { color: var(--soft); }
.scroll + .note, table + .note { margin-top: .8rem; }
.notes { border-left: 3px solid var(--line); margin: .8rem 0; padding: .1rem 0 .1rem .8rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; margin: .9rem 0; padding: 0; }
.tiles a { display: block; min-width: 8.5rem; padding: .4rem .8rem; border: 1px solid var(--line); border-radius: 6px;
  background: var(--head); color: inherit; text-decoration: none; }
.tiles a:hover { border-color: var(--link); }
.tiles strong { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
form { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; margin: .8rem 0; }
form label { display: flex; flex-direction: column; font-size: .85rem; color: var(--soft); }
form a { padding: calc(.35rem + 1px) 0; }
form .again { flex-direction: row; gap: .4rem; align-items: center; padding: .4rem 0; }
form .again[hidden] { display: none; }
input, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--soft); border-radius: 6px;
  padding: .35rem .6rem; }
input[type=search], input[type=text] { width: 15rem; max-width: 100%; }
button { background: var(--head); cursor: pointer; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: start; vertical-align: top; padding: .35rem .6rem; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { background: var(--head); border-top: 0; font-size: .85rem; color: var(--soft); overflow-wrap: normal; }
tbody th { font-weight: 600; min-width: 9rem; }
.queues tbody th, .nodes tbody th { width: 24%; }
.queues td:last-child { width: 7rem; }
.waiting tbody th { width: 20%; min-width: 13rem; }
.depth1 { padding-left: 1.8rem; } .depth2 { padding-left: 3rem; } .depth3 { padding-left: 4.2rem; }
.depth4 { padding-left: 5.4rem; } .depth5 { padding-left: 6.6rem; } .depth6 { padding-left: 7.8rem; }
.state { color: var(--over); font-weight: 400; font-size: .85rem; }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.told { font-variant-numeric: tabular-nums; }
.bar { display: inline-block; vertical-align: middle; width: 12rem; max-width: 40%; height: .7rem; margin-right: .7rem;
  border-radius: 3px; }
.pair { display: inline-flex; flex-direction: column; gap: 2px; width: 12rem; max-width: 40%; vertical-align: middle;
  margin-right: .7rem; }
.pair .bar { width: 100%; max-width: none; height: .4rem; margin: 0; }
.track { fill: var(--track); } .used { fill: var(--used); } .reserved { fill: var(--reserved); } .over { fill: var(--over); }
.short { min-width: 7rem; } .asks { min-width: 8rem; } .why { min-width: 18rem; } .why p { color: var(--soft); font-size: .9rem; }
.hours td, .hours thead th { font-size: .9rem; } .hours thead th { white-space: nowrap; }
.day .bar { display: block; width: 100%; max-width: none; height: .35rem; margin: .2rem 0 0; }
.scroll { overflow-x: auto; }
.pager { display: flex; gap: 1rem; padding: .5rem .6rem; border-top: 1px solid var(--line); }
footer { padding-top: 1.5rem; padding-bottom: 2rem; font-size: .85rem; }
@media (max-width: 64rem) {
  table, thead, tbody, tr, th, td { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tbody tr { border-top: 1px solid var(--line); padding: .35rem 0; }
  tbody th, tbody td { border: 0; padding-top: .1rem; padding-bottom: .1rem; min-width: 0; }
  .queues tbody th, .nodes tbody th, .queues td:last-child { width: auto; } .waiting tbody th { width: auto; min-width: 0; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
  .short, .asks, .why { min-width: 0; } .number { white-space: normal; }
  .tiles { display: grid; grid-template-columns: 1fr 1fr; } .tiles a { height: 100%; min-width: 0; }
  .bar + .told, .pair + .told { display: block; } .bar, .pair { max-width: 55%; } .day .bar { max-width: none; }
  form label, input[type=search], input[type=text] { width: 100%; }
}
@media (forced-colors: active) { .bar { forced-color-adjust: none; } }
@media print { form, .pager, .skip { display: none; } }
"""


SCRIPT: Final = """\
"use strict";
(() => {
  const box = document.getElementById("again"), key = "cardquota-again";
  const keep = (value) => { try { sessionStorage.setItem(key, value); } catch { /* without a memory it is off after a load */ } };
  const kept = () => { try { return sessionStorage.getItem(key) === "on"; } catch { return false; } };
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    if (box.checked) { timer = setTimeout(() => location.reload(), 30000); }
  };
  box.checked = kept();
  box.addEventListener("change", () => { keep(box.checked ? "on" : "off"); wait(); });
  document.addEventListener("input", wait);
  box.parentElement.hidden = false;
  wait();
})();
"""
