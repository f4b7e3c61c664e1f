// Puts a choice above the table of all rules for each of its columns that `data-columns` names. Without scripts, or
// in a page of Markdown, the table is whole.
"use strict";

const ANY = "any program";

function ready() {
  const place = document.getElementById("filters");
  const table = place && [...document.querySelectorAll("article table")].find((one) => one.tHead);
  if (!table || place.children.length > 0) return;
  const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const releases = place.dataset.releases.split(" ");
  const choices = place.dataset.columns.split(" ").map((title) => {
    const column = titles.indexOf(title);
    const valuesOf = (row) => values(row.cells[column].textContent.trim(), releases);
    const known = new Set([...table.tBodies[0].rows].flatMap(valuesOf));
    known.delete(ANY);
    const given = { releases, programs: place.dataset.programs.split(", ") };
    return { ...labelled(title, given[title] ?? [...known].sort()), valuesOf };
  });
  const count = document.createElement("output");
  place.append(...choices.map(({ label }) => label), count);

  function update() {
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      row.hidden = !choices.every(({ select, valuesOf }) => fits(valuesOf(row), select.value));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = shown === 1 ? "1 rule" : `${shown} rules`;
  }
  for (const { select } of choices) select.addEventListener("change", update);
  update();
}

function labelled(title, values) {
  const select = document.createElement("select");
  select.name = title;
  select.append(new Option("any", ""), ...values.map((value) => new Option(value, value)));
  const label = document.createElement("label");
  label.append(title, " ", select);
  return { label, select };
}

// What a cell stands for: `0.18 to 0.19` for each of these releases, `A, B` for both, `any program` for all.
function values(text, releases) {
  const [first, last] = text.split(" to ");
  if (text === "every release") return releases;
  if (releases.includes(first) && releases.includes(last)) return releases.slice(releases.indexOf(first), releases.indexOf(last) + 1);
  return text.split(", ");
}

function fits(found, chosen) {
  return !chosen || found.includes(chosen) || found.includes(ANY);
}

// The theme replaces the page without loading it where its navigation is instant.
if (window.document$) window.document$.subscribe(ready);
else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
else ready();
