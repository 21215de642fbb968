"use strict";
// Everything is readable without this: it adds a choice of the scheme, values under the pointer and series that can be hidden.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("scheme");
  const night = matchMedia("(prefers-color-scheme: dark)");
  const remember = (scheme) => { try { localStorage.setItem("thalweg-scheme", scheme); } catch { /* A file may have no storage. */ } };
  const recall = () => { try { return localStorage.getItem("thalweg-scheme"); } catch { return null; } };
  const current = () => root.dataset.scheme || (night.matches ? "dark" : "light");
  const label = () => { button.textContent = current() === "dark" ? "☀ light" : "☾ dark"; };
  if (recall()) root.dataset.scheme = recall();
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.scheme = current() === "dark" ? "light" : "dark";
    remember(root.dataset.scheme);
    label();
  });
  night.addEventListener("change", label);
  label();

  const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const time = (us) => us >= 1e6 ? digits(us / 1e6) + " s" : us >= 1e3 ? digits(us / 1e3) + " ms" : us >= 1 ? digits(us) + " µs" : digits(us * 1e3) + " ns";
  const write = { n: digits, t: time, p: (share) => digits(share) + " %", 9: (beyond) => "p" + Number((100 - 100 / beyond).toPrecision(6)) };
  const read = (axis, place) => {
    if (!axis) return null;
    const [division, from, to, start, end, unit] = axis.split(" ");
    const share = (place - start) / (end - start);
    if (share > 1 || 0 > share) return null;
    const value = division === "log" ? from * Math.pow(to / from, share) : Number(from) + (to - from) * share;
    return write[unit](value);
  };
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const tell = (event) => {
    const svg = event.target.closest("figure svg");
    const place = svg && svg.getScreenCTM() && new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const name = svg && event.target.closest("g.s") && event.target.closest("g.s").querySelector("title");
    const values = place ? [read(svg.dataset.x, place.x), read(svg.dataset.y, place.y)] : [];
    const both = values.every((value) => value) || (svg && !svg.dataset.y);
    const lines = [name && name.textContent, both && values.filter((value) => value).join(" · ")].filter((line) => line);
    tip.hidden = lines.length === 0;
    tip.textContent = lines.join("\n");
    const room = root.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(0, Math.min(event.clientX + 14, room)) + scrollX + "px";
    tip.style.top = event.clientY + scrollY + 16 + "px";
  };
  document.addEventListener("pointermove", tell);
  document.addEventListener("pointerdown", tell);

  for (const key of document.querySelectorAll("g.key")) {
    const series = "g.s" + key.classList[1].slice(1);
    const toggle = () => {
      const hidden = key.classList.toggle("out");
      key.setAttribute("aria-pressed", String(!hidden));
      for (const one of key.closest("svg").querySelectorAll(series)) one.classList.toggle("off", hidden);
    };
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.setAttribute("aria-pressed", "true");
    key.addEventListener("click", toggle);
    key.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); } });
  }
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
})();
