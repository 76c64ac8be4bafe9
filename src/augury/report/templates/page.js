"use strict";
// Reading plots: a hairline that follows the pointer, a finger, or the arrow keys.
for (const svg of document.querySelectorAll("svg[data-read]")) {
  const readings = JSON.parse(svg.dataset.read), hair = svg.querySelector(".hair");
  const words = svg.parentElement.querySelector(".read");
  let now = readings.length - 1;
  const show = (k) => {
    now = Math.max(0, Math.min(readings.length - 1, k));
    if (now < 0 || !words) return;
    hair.setAttribute("x1", readings[now][0]);
    hair.setAttribute("x2", readings[now][0]);
    svg.classList.add("on");
    words.textContent = readings[now][1];
  };
  const hide = () => { svg.classList.remove("on"); if (words) words.textContent = ""; };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    let best = 0;
    readings.forEach((r, k) => { if (Math.abs(r[0] - x) < Math.abs(readings[best][0] - x)) best = k; });
    show(best);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("focus", () => show(now));
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: readings.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key]);
  });
}

// Copying a command, if the browser allows it.
for (const button of document.querySelectorAll(".copy")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
  });
}

// The slider through an orbit.
const source = document.getElementById("orbit-data");
if (source) walk(JSON.parse(source.textContent));

function walk(data) {
  const at = (id) => document.getElementById(id);
  const make = (tag, words, name) => {
    const element = document.createElement(tag);
    if (words !== undefined) element.textContent = words;
    if (name) element.className = name;
    return element;
  };
  const picture = at("picture"), slider = at("slider");
  let example = 0, route = 0, step = 0;

  const paint = (element, r, row, column) => {
    if (r.style === "picture") {
      element.classList.add(r.sheet);
      element.style.aspectRatio = r.ratio;
      const share = (k, n) => (n < 2 ? 0 : 100 * k / (n - 1)) + "%";
      element.style.backgroundPosition = share(column, r.columns) + " " + share(row, r.rows);
      return;
    }
    const drawing = element.querySelector("path.front");
    if (drawing && element.dataset.route === String(r.index)) { drawing.setAttribute("d", r.paths[row][column]); return; }
    element.dataset.route = r.index;
    element.innerHTML = '<svg viewBox="0 0 1000 1000" aria-hidden="true">' + r.behind + "</svg>";
    const front = document.createElementNS("http://www.w3.org/2000/svg", "path");
    front.setAttribute("class", "front " + r.style);
    front.setAttribute("d", r.paths[row][column]);
    element.firstChild.append(front);
  };

  const choices = (id, names, thumbs, pick) => names.forEach((name, k) => {
    const label = make("label"), input = make("input");
    input.type = "radio"; input.name = id; input.value = k; input.checked = k === 0;
    input.addEventListener("change", () => pick(k));
    label.append(input);
    if (thumbs) {
      const thumb = make("span", "", data.routes[0].style === "picture" ? "frame thumb" : "frame thumb drawing");
      paint(thumb, data.routes[0], k, data.routes[0].start);
      label.append(thumb);
    }
    label.append(make("span", name));
    at(id).append(label);
  });

  const prediction = (model, m, r) => {
    const box = make("div"), heading = make("h4");
    heading.append(make("span", "", "key c" + m), model.name + " predicts");
    box.append(heading);
    if (data.task === "regression") {
      box.append(make("p", model.values[r.index][example][step].map((v) => v.toPrecision(4)).join(", "), "class"));
      return box;
    }
    const classes = model.classes[r.index][example][step], chances = model.chances[r.index][example][step];
    const right = data.classes[classes[0]] === data.examples[example].label;
    const said = make("p", data.classes[classes[0]], right ? "class" : "class wrong");
    if (!right) said.append(" ", make("small", "not " + data.examples[example].label));
    const bars = make("ul", undefined, "bars");
    classes.forEach((c, k) => {
      const row = make("li"), bar = make("span", undefined, "bar c" + m), fill = make("i");
      fill.style.width = 100 * chances[k] + "%";
      bar.append(fill);
      row.append(make("span", data.classes[c], "what"), bar, make("span", (100 * chances[k]).toFixed(1) + " %", "how"));
      bars.append(row);
    });
    box.append(said, bars);
    return box;
  };

  const curves = (r) => {
    const svg = at("truth"), n = r.at.length, x = (k) => 300 * (n < 2 ? 0.5 : k / (n - 1)), lines = [];
    const values = (model) => data.task === "regression"
      ? model.values[r.index][example].map((v) => v[0]) : model.truth[r.index][example];
    const all = data.models.flatMap(values);
    const low = data.task === "regression" ? Math.min(...all) : 0;
    const high = data.task === "regression" ? Math.max(...all, low + 1e-9) : 1;
    data.models.forEach((model, m) => {
      const points = values(model).map((v, k) => x(k).toFixed(1) + " " + (84 - 78 * (v - low) / (high - low)).toFixed(1));
      lines.push('<path class="line c' + m + '" d="M' + points.join("L") + '"/>');
    });
    const wide = r.zone[1] - r.zone[0];
    const zone = '<rect class="zone" x="' + 300 * r.zone[0] + '" width="' + 300 * wide + '" height="90"/>';
    svg.setAttribute("preserveAspectRatio", "none");
    svg.innerHTML = zone + '<path class="base" d="M0 84H300"/>' + lines.join("") + '<path class="now" d="M' + x(step) + ' 0V90"/>';
    const what = data.task === "regression" ? "First output" : "Probability of the true class, " + data.examples[example].label + ",";
    const range = data.task === "regression" ? "" : " (bottom 0, top 1)";
    at("truth-caption").textContent = what + " along the slider" + range + ".";
    svg.setAttribute("aria-label", at("truth-caption").textContent);
    at("inside").style.left = 100 * r.zone[0] + "%";
    at("inside").style.width = 100 * wide + "%";
  };

  const show = () => {
    const r = data.routes[route], place = r.name + ": " + r.at[step];
    paint(picture, r, example, step);
    picture.setAttribute("aria-label", "Input " + data.examples[example].label + ", " + place);
    slider.setAttribute("aria-valuetext", r.at[step]);
    at("where").replaceChildren(make("b", r.at[step]), (r.inside[step] ? "  within" : "  beyond") + " the " + data.origin + " range");
    at("answers").replaceChildren(...data.models.map((model, m) => prediction(model, m, r)));
    curves(r);
  };

  const take = (k) => {
    picture.className = "picture"; picture.innerHTML = ""; delete picture.dataset.route;
    route = k;
    const r = data.routes[k];
    step = r.start;
    slider.max = r.at.length - 1;
    slider.value = step;
    at("slider-name").textContent = r.name + " (" + r.learned + ")";
    show();
  };

  choices("pick-example", data.examples.map((e) => e.label), true, (k) => { example = k; show(); });
  choices("pick-route", data.routes.map((r) => r.name), false, take);
  slider.addEventListener("input", () => { step = Number(slider.value); show(); });
  at("walk").hidden = false;
  take(0);
}
