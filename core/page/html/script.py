"""The script of the page: it loads the page anew every half minute, if the reader wants that. All else works without it."""

from typing import Final

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
