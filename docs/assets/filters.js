// Puts a text field and two choices above the table of all rules: by family and by release. Without scripts, or in a
// page of Markdown, the table is whole.
"use strict";

function ready() {
  const place = document.getElementById("filters");
  const table = place && [...document.querySelectorAll("article table")].find((one) => one.tHead);
  if (!table || place.children.length > 0) return;
  const releases = place.dataset.releases.split(" ");
  const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.trim() === "releases");
  const text = Object.assign(document.createElement("input"), { type: "search" });
  const family = choice(place.dataset.families.split("|").map((one) => new Option(one, one.split(" ")[0])));
  const release = choice(releases.map((one) => new Option(one)));
  const count = document.createElement("output");
  place.append(labelled("text", text), labelled("family", family), labelled("release", release), count);

  function update() {
    const words = text.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const content = row.textContent.toLowerCase();
      row.hidden =
        !row.textContent.trim().startsWith(family.value) ||
        !words.every((word) => content.includes(word)) ||
        !concerns(row.cells[column].textContent, release.value, releases);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = shown === 1 ? "1 rule" : `${shown} rules`;
  }
  for (const one of [text, family, release]) one.addEventListener("input", update);
  update();
}

function choice(options) {
  const select = document.createElement("select");
  select.append(new Option("any", ""), ...options);
  return select;
}

function labelled(name, field) {
  field.name = name;
  const label = document.createElement("label");
  label.append(name, " ", field);
  return label;
}

// Whether `all`, `since 0.18`, `up to 0.17` or `0.15 to 0.17` has a release.
function concerns(cell, chosen, releases) {
  if (!chosen) return true;
  const at = (name) => releases.indexOf(name);
  const [, first] = cell.match(/(?:^|since )([\d.]+)/) ?? [];
  const [, last] = cell.match(/to ([\d.]+)/) ?? [];
  return (!first || at(first) <= at(chosen)) && (!last || at(chosen) <= at(last));
}

// The theme replaces the page without loading it where its navigation is instant.
if (window.document$) window.document$.subscribe(ready);
else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
else ready();
