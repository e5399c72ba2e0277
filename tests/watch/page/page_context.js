// The scripts of watch's page in a context of their own, with as much of a browser as they touch when a chart is made and drawn:
// elements that keep what they are given, canvases that note what is drawn on them.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

class StubElement {
  constructor(name) {
    Object.assign(this, {name, children: [], attributes: {}, listeners: {}, style: {}, dataset: {}, hidden: false, className: "", textContent: "",
                         clientWidth: 0, clientHeight: 0, offsetTop: 0, parentElement: null});
    this.classList = {toggle: (word, on) => (this[`has_${word}`] = on)};
    if (name === "canvas") this.context = new StubCanvasContext();
  }
  append(...nodes) {
    for (const node of nodes) {
      this.children.push(node);
      if (node instanceof StubElement) node.parentElement = this;
    }
  }
  replaceChildren(...nodes) {
    this.children = [];
    this.append(...nodes);
  }
  after(node) {
    this.parentElement?.append(node);
  }
  // A tag, or a class: `.facts`.
  querySelector(wanted) {
    for (const child of this.children) {
      if (!(child instanceof StubElement)) continue;
      if (wanted === child.name || wanted === `.${child.className}`) return child;
      const below = child.querySelector(wanted);
      if (below) return below;
    }
    return null;
  }
  get options() {
    return this.children;
  }
  // All that is written in it and below, in order.
  get words() {
    const below = this.children.map((child) => (child instanceof StubElement ? child.words : String(child)));
    return [this.textContent, ...below].filter((text) => text !== "").join("|");
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  addEventListener(kind, called) {
    this.listeners[kind] = called;
  }
  setPointerCapture() {}
  getBoundingClientRect() {
    return {left: 0, top: 0};
  }
  getContext() {
    return this.context;
  }
}

// Every call is noted as [name, arguments…], beside the settings at that moment.
class StubCanvasContext {
  constructor() {
    this.calls = [];
    return new Proxy(this, {
      get: (target, name) => {
        if (name in target) return target[name];
        return (...given) => {
          target.calls.push({name, given, look: {strokeStyle: target.strokeStyle, fillStyle: target.fillStyle, globalAlpha: target.globalAlpha}});
          return name === "measureText" ? {width: 6 * given[0].length} : undefined;
        };
      },
    });
  }
}

class StubPath2D {
  constructor() {
    this.lines = [];
  }
  moveTo(x, y) {
    this.lines.push([[x, y]]);
  }
  lineTo(x, y) {
    this.lines.at(-1).push([x, y]);
  }
}

// Timers that the test runs: [called, milliseconds] by id, in the order in which they were set.
class StubTimers {
  constructor() {
    this.waiting = new Map();
    this.last = 0;
  }
  set(called, milliseconds) {
    this.waiting.set(++this.last, [called, milliseconds]);
    return this.last;
  }
  run() {
    const due = [...this.waiting.values()];
    this.waiting.clear();
    for (const [called] of due) called();
  }
}

class StubObserver {
  constructor(called, settings = {}) {
    Object.assign(this, {called, settings, observed: []});
  }
  observe(target) {
    this.observed.push(target);
  }
  disconnect() {
    this.observed = [];
  }
}

// Of the window: where the page is, what the browser keeps for it, and who listens to it.
function stubWindow(hash) {
  const listeners = {}, kept = new Map(), timers = new StubTimers(), location = {hash};
  return {
    location, listeners, timers, kept,
    history: {replaceState: (state, title, url) => (location.hash = url)},
    localStorage: {getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value)},
    addEventListener: (kind, called) => (listeners[kind] = called),
    matchMedia: () => ({matches: false, addEventListener: (kind, called) => (listeners.scheme = called)}),
    getComputedStyle: () => ({getPropertyValue: (name) => ` ${name.slice(2)} `}),
    setTimeout: (called, milliseconds) => timers.set(called, milliseconds), clearTimeout: (id) => timers.waiting.delete(id),
    requestIdleCallback: (called) => timers.set(called, 0), IntersectionObserver: StubObserver, ResizeObserver: StubObserver,
  };
}

// All names of the page's scripts but those of app.js, which starts the page. `hash`: the part of the link that keeps its state.
function loadPage(folder, names, hash = "") {
  const elements = new Map(), frames = [];
  const globals = {
    ...stubWindow(hash), console, URLSearchParams, Path2D: StubPath2D, performance: {now: () => 0}, window: {devicePixelRatio: 1}, frames, elements,
    ImageData: class {
      constructor(width, height) {
        Object.assign(this, {width, height, data: new Uint8ClampedArray(4 * width * height)});
      }
    },
    document: {
      activeElement: null, documentElement: new StubElement("html"),
      createElement: (name) => new StubElement(name),
      getElementById: (id) => elements.get(id) ?? elements.set(id, new StubElement(id)).get(id),
    },
    requestAnimationFrame: (called) => frames.push(called),
  };
  const context = vm.createContext(globals);
  const scripts = fs.readdirSync(folder).filter((file) => file.endsWith(".js") && file !== "app.js").sort();
  const text = scripts.map((file) => fs.readFileSync(path.join(folder, file), "utf8")).join("\n");
  vm.runInContext(`${text}\nglobalThis.names = {${names.join(", ")}};`, context, {filename: "page"});
  return {...context.names, globals: context, frames, elements};
}

// Numbers that are the same in every run (mulberry32).
function drawer(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {uniform, below: (n) => Math.floor(uniform() * n), normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())};
}

module.exports = {StubElement, drawer, loadPage};
