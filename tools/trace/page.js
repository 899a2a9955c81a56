"use strict";

// Draws one file of the trace: windows as bands, requests as boxes, waits as lines, touches as dots.

const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("view"), pen = canvas.getContext("2d");
const tip = document.getElementById("tip"), chooser = document.getElementById("file");
const MARGIN = {left: 70, right: 16, top: 8, bottom: 28};
const REACH = 6; // pixels within which the pointer finds something
const SMALL = 1; // pixels: nothing is drawn smaller

const layers = [
    {key: "windows", name: "readahead window", fill: "#cfe3f7", edge: "#9cc3ea", shown: true, draw: drawBand,
     tell: (o) => `window of ${o.n} pages from ${o.page}, ${o.ahead} from its mark on\n` +
                  `${o.pattern}, ${o.kind} of page ${o.hit}\nasked for at ${us(o.t)}, there at ${us(o.e)}`},
    {key: "requests", name: "request", fill: "#f3cf8f", edge: "#b8862b", shown: true, draw: drawBox,
     tell: (o) => `request ${o.what}\npages ${o.page} to ${o.page + o.n - 1}\n` +
                  `${us(o.t)} to ${us(o.e)}, ${us(o.e - o.t)}`},
    {key: "waits", name: "wait", fill: "#d33", edge: "#d33", shown: true, draw: drawLine,
     tell: (o) => `wait for page ${o.page}${o.locked ? ", lock kept" : ""}\n` +
                  `${us(o.t)} to ${us(o.e)}, ${us(o.e - o.t)}`},
    {key: "touches", name: "touch", fill: "#222", edge: "#222", shown: true, draw: drawDot,
     tell: (o) => `${o.who}: ${o.access} of page ${o.page}\n${o.outcome}, ${o.reason}, ` +
                  `attempts ${o.attempts}, waited ${us(o.waited / 1000)}\n${us(o.t)} to ${us(o.e)}`},
];

let file = 0;
let view = {t0: 0, t1: 1, p0: 0, p1: 1};

function us(value) {
    return value >= 1000 ? `${(value / 1000).toFixed(3)} ms` : `${+value.toFixed(3)} us`;
}

function of(layer) {
    return data[layer.key].filter((o) => o.file === file);
}

function x(t) {
    return MARGIN.left + (t - view.t0) / (view.t1 - view.t0) * (canvas.clientWidth - MARGIN.left - MARGIN.right);
}

function y(page) {
    const height = canvas.clientHeight - MARGIN.top - MARGIN.bottom;
    return MARGIN.top + height - (page - view.p0) / (view.p1 - view.p0) * height;
}

function timeAt(px) {
    return view.t0 + (px - MARGIN.left) / (canvas.clientWidth - MARGIN.left - MARGIN.right) * (view.t1 - view.t0);
}

function pageAt(py) {
    const height = canvas.clientHeight - MARGIN.top - MARGIN.bottom;
    return view.p0 + (MARGIN.top + height - py) / height * (view.p1 - view.p0);
}

// ---- What is drawn ----

function boxOf(o) {
    const n = o.n || 1;
    return {x: x(o.t), y: y(o.page + n), w: Math.max(x(o.e) - x(o.t), SMALL),
            h: Math.max(y(o.page) - y(o.page + n), SMALL)};
}

function drawBand(o, layer) {
    const b = boxOf(o);
    pen.fillStyle = layer.fill;
    pen.fillRect(b.x, b.y, b.w, b.h);
    pen.fillStyle = layer.edge; // from the mark on: pages read ahead
    if (o.ahead) pen.fillRect(b.x, b.y, b.w, b.h * o.ahead / o.n);
}

function drawBox(o, layer) {
    const b = boxOf(o);
    pen.globalAlpha = 0.5;
    pen.fillStyle = layer.fill;
    pen.fillRect(b.x, b.y, b.w, b.h);
    pen.globalAlpha = 1;
    pen.strokeStyle = layer.edge;
    pen.strokeRect(b.x, b.y, b.w, b.h);
}

function drawLine(o, layer) {
    const at = y(o.page + 0.5);
    pen.strokeStyle = layer.edge;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x(o.t), at);
    pen.lineTo(Math.max(x(o.e), x(o.t) + SMALL), at);
    pen.stroke();
    pen.lineWidth = 1;
}

function drawDot(o, layer) {
    pen.fillStyle = o.outcome !== "done" ? "#c0c" : o.waited ? "#d33" : layer.fill;
    pen.fillRect(x(o.t) - 1.5, y(o.page + 0.5) - 1.5, 3, 3);
}

function step(span, wanted) {
    const raw = span / wanted, unit = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw);
}

function drawAxes(width, height) {
    const dt = step(view.t1 - view.t0, width / 120), dp = Math.max(1, step(view.p1 - view.p0, height / 50));
    pen.fillStyle = "#555";
    pen.strokeStyle = "#eee";
    pen.textAlign = "center";
    for (let t = Math.ceil(view.t0 / dt) * dt; t <= view.t1; t += dt) {
        pen.strokeRect(x(t), MARGIN.top, 0, height - MARGIN.top - MARGIN.bottom);
        pen.fillText(us(t), x(t), height - 10);
    }
    pen.textAlign = "right";
    for (let p = Math.ceil(view.p0 / dp) * dp; p <= view.p1; p += dp) {
        pen.strokeRect(MARGIN.left, y(p), width - MARGIN.left - MARGIN.right, 0);
        pen.fillText(String(p), MARGIN.left - 6, y(p) + 4);
    }
}

function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    drawAxes(width, height);
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN.left, MARGIN.top, width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom);
    pen.clip();
    for (const layer of layers) {
        if (!layer.shown) continue;
        const inside = of(layer).filter((o) => o.e >= view.t0 && o.t <= view.t1);
        inside.forEach((o) => layer.draw(o, layer));
        document.body.dataset[layer.key] = inside.length;
    }
    pen.restore();
}

// ---- Moving about ----

function showAll() {
    const all = layers.flatMap(of);
    const low = Math.min(...all.map((o) => o.page)), high = Math.max(...all.map((o) => o.page + (o.n || 1)));
    const first = Math.min(...all.map((o) => o.t)), last = Math.max(...all.map((o) => o.e));
    const room = Math.max(1, (last - first) * 0.02), space = Math.max(1, (high - low) * 0.02);
    view = all.length ? {t0: first - room, t1: last + room, p0: low - space, p1: high + space}
                      : {t0: 0, t1: Math.max(1, data.end), p0: 0, p1: 1};
    draw();
}

function zoom(event) {
    event.preventDefault();
    const factor = Math.exp((event.deltaY || event.deltaX) / 400);
    const t = timeAt(event.offsetX), p = pageAt(event.offsetY);
    if (!event.ctrlKey) {
        view.t0 = t + (view.t0 - t) * factor;
        view.t1 = t + (view.t1 - t) * factor;
    }
    if (!event.shiftKey) {
        view.p0 = p + (view.p0 - p) * factor;
        view.p1 = p + (view.p1 - p) * factor;
    }
    draw();
}

let grabbed = null;

function move(event) {
    if (grabbed) {
        const dt = timeAt(event.offsetX) - timeAt(grabbed.x), dp = pageAt(event.offsetY) - pageAt(grabbed.y);
        view = {t0: view.t0 - dt, t1: view.t1 - dt, p0: view.p0 - dp, p1: view.p1 - dp};
        grabbed = {x: event.offsetX, y: event.offsetY};
        draw();
    }
    point(event);
}

function distance(o, px, py) {
    const b = boxOf(o);
    const dx = Math.max(b.x - px, 0, px - b.x - b.w), dy = Math.max(b.y - py, 0, py - b.y - b.h);
    return Math.hypot(dx, dy);
}

// The topmost thing near the pointer: touches before waits before requests before windows.
function find(px, py) {
    for (const layer of [...layers].reverse().filter((l) => l.shown)) {
        let best = null, reach = REACH;
        for (const o of of(layer)) {
            const far = distance(layer.key === "touches" ? {...o, e: o.t} : o, px, py);
            if (far < reach) [best, reach] = [o, far];
        }
        if (best) return layer.tell(best);
    }
    return "";
}

function point(event) {
    const words = find(event.offsetX, event.offsetY);
    tip.textContent = words;
    tip.style.display = words ? "block" : "none";
    tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 320)}px`;
    tip.style.top = `${event.clientY + 14}px`;
}

// ---- The head of the page ----

function addLegend(layer) {
    const label = document.createElement("label"), mark = document.createElement("span");
    mark.className = "mark";
    mark.style.background = layer.fill;
    mark.style.borderColor = layer.edge;
    label.append(mark, `${layer.name} (${data[layer.key].length})`, " \u00a0 ");
    label.onclick = () => {
        layer.shown = !layer.shown;
        label.style.opacity = layer.shown ? 1 : 0.4;
        draw();
    };
    document.getElementById("legend").append(label);
}

function resize() {
    canvas.style.width = `${window.innerWidth}px`;
    canvas.style.height = `${Math.max(200, window.innerHeight - canvas.offsetTop - 50)}px`;
    draw();
}

function start() {
    const touches = data.files.map((_, i) => data.touches.filter((o) => o.file === i).length);
    data.files.forEach((name, i) => chooser.add(new Option(`file ${name}: ${touches[i]} touches`, i)));
    file = Math.max(0, touches.indexOf(Math.max(...touches)));
    chooser.value = file;
    chooser.onchange = () => {
        file = Number(chooser.value);
        showAll();
    };
    layers.forEach(addLegend);
    document.getElementById("counts").textContent =
        Object.entries(data.counted).map(([name, value]) => `${name} ${value}`).join(", ");
    canvas.onwheel = zoom;
    canvas.onmousedown = (event) => { grabbed = {x: event.offsetX, y: event.offsetY}; };
    canvas.onmousemove = move;
    canvas.onmouseleave = () => { tip.style.display = "none"; };
    window.onmouseup = () => { grabbed = null; };
    canvas.ondblclick = showAll;
    window.onresize = resize;
    resize();
    showAll();
}

start();
