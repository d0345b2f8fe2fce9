// A page's own script, in one module with the explorer's front end: inflate plotly.js, draw figures, start the
// explorers, sort tables, switch the theme. Asks for nothing outside the file.

const unpack = (node) => Uint8Array.from(atob(node.textContent), (char) => char.charCodeAt(0));
const inkOf = (node) => getComputedStyle(node).color;

const SLIDER_PX = 80; // what Plotly's own slider takes below a plot

function figureSliders(library, plot, layout) {
  // Plotly's sliders answer to the mouse only: here each becomes an input that takes the arrow keys too.
  const sliders = layout.sliders ?? [];
  delete layout.sliders;
  if (!sliders.length) return;
  layout.height -= SLIDER_PX * sliders.length;
  layout.margin.b -= SLIDER_PX * sliders.length;
  plot.style.height = `${layout.height}px`;
  plot.parentElement.after(...sliders.map(({ steps, active, currentvalue }) => {
    const says = el("output", {}, steps[active].label);
    const input = el("input", { type: "range", min: 0, max: steps.length - 1, step: 1 });
    input.value = active;
    const tell = () => { says.textContent = steps[input.value].label; input.setAttribute("aria-valuetext", says.textContent); };
    tell();
    input.addEventListener("input", async () => {
      tell();
      const { method, args } = steps[input.value];
      await library[method](plot, ...structuredClone(args));
      plot.dataset.step = `${Number(plot.dataset.step ?? 0) + 1}`;
    });
    return el("label", { class: "kit-figure-slider" }, el("span", {}, currentvalue.prefix), input, says);
  }));
}

function figurePoint(library, plot, point) {
  // The reader's own workload on a map of percentages: two inputs move the star, whose value is read off the map.
  if (!point) return;
  const at = [...point.start];
  const between = (list, place) => {
    const low = Math.min(Math.floor(place), list.length - 2);
    return [list[low], list[low + 1], place - low];
  };
  const value = (map) => {
    const across = (row) => { const [a, b, part] = between(row, (at[0] / 100) * (row.length - 1)); return a + (b - a) * part; };
    const [low, high, part] = between(map, (at[1] / 100) * (map.length - 1));
    return across(low) + (across(high) - across(low)) * part;
  };
  const signed = (number) => `${number < 0 ? "" : "+"}${number.toFixed(2)}`;
  let placing = false;
  const place = async () => {
    placing = true;
    const text = point.maps.map((trace) => [`your workload: ${signed(value(plot.data[trace].z))} ns`]);
    const beside = `${at[1] > 85 ? "bottom" : "top"} ${at[0] > 60 ? "left" : "right"}`;
    const moved = { x: text.map(() => [at[0]]), y: text.map(() => [at[1]]), text, textposition: beside };
    await library.restyle(plot, moved, point.stars);
    placing = false;
    plot.dataset.step = `${Number(plot.dataset.step ?? 0) + 1}`;
  };
  plot.on("plotly_restyle", () => { if (!placing) place(); }); // another map is shown: its value there
  const inputs = point.labels.map((label, axis) => {
    const says = el("output", {}, `${at[axis]}`);
    const input = el("input", { type: "range", min: 0, max: 100, step: 1 });
    input.value = at[axis];
    input.addEventListener("input", () => { at[axis] = Number(input.value); says.textContent = input.value; place(); });
    return el("label", { class: "kit-figure-slider" }, el("span", {}, label), input, says);
  });
  let last = plot.parentElement;
  while (last.nextElementSibling?.matches(".kit-figure-slider")) last = last.nextElementSibling;
  last.after(...inputs);
}

async function drawFigures(library) {
  for (const figure of document.querySelectorAll(".kit-figure")) {
    const plot = figure.querySelector(".kit-plot");
    const carried = figure.querySelector("script");
    const text = carried.type === "application/json" ? carried.textContent : await inflate(unpack(carried));
    const { data, layout, config, point } = JSON.parse(text);
    layout.font = { ...layout.font, color: inkOf(plot) };
    figureSliders(library, plot, layout);
    await library.newPlot(plot, data, layout, config);
    figurePoint(library, plot, point);
    plot.dataset.drawn = "1";
    await new Promise((next) => setTimeout(next)); // let the browser show it before the next one
  }
}

async function startExplorers() {
  for (const states of document.querySelectorAll(".kit-states")) {
    const data = JSON.parse(await inflate(unpack(states)));
    const host = states.previousElementSibling;
    host.replaceChildren();
    render({ model: offline(data), el: host });
  }
}

function widen(table) {
  // On a narrow screen a table scrolls sideways; cells with much text still need a width that can be read.
  for (const cell of table.querySelectorAll("td")) if (cell.textContent.length > 40) cell.classList.add("kit-long");
}

function sortable(table) {
  const body = table.tBodies[0];
  if (!body || table.tHead?.rows.length !== 1 || table.querySelector("[rowspan], [colspan]")) return;
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    if (!cell.textContent.trim()) return;
    const button = el("button", { type: "button", class: "kit-sort" }, ...cell.childNodes);
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column]?.textContent.trim() ?? "";
      const number = (text) => (/^[−+-]?[\d.,]+/.test(text) ? Number.parseFloat(text.replaceAll(",", "").replace("−", "-")) : NaN);
      const order = (a, b) => {
        const [x, y] = [number(key(a)), number(key(b))];
        const by = Number.isNaN(x) || Number.isNaN(y) ? key(a).localeCompare(key(b)) : x - y;
        return down ? -by : by;
      };
      body.append(...[...body.rows].sort(order));
    });
  });
}

function themes() {
  const button = document.getElementById("kit-theme"), choices = ["auto", "light", "dark"];
  const recolour = () => globalThis.Plotly && document.querySelectorAll(".kit-figure .kit-plot[data-drawn]").forEach(
    (plot) => globalThis.Plotly.relayout(plot, { "font.color": inkOf(plot) }));
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = choices[(choices.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % choices.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
    recolour();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
}

themes();
for (const table of document.querySelectorAll("main table")) { widen(table); sortable(table); }
const library = document.getElementById("kit-plotly");
if (library) {
  globalThis.kitlibPlotly = inflate(unpack(library)).then(run);
  await startExplorers();
  await drawFigures(await globalThis.kitlibPlotly);
}
document.documentElement.dataset.ready = "1";
