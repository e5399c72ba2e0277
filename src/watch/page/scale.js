// From values to pixels and back, linear or logarithmic, with ticks at round numbers.
class Scale {
  constructor(from, to, pixelFrom, pixelTo, log) {
    this.log = log && from > 0 && to > 0;
    Object.assign(this, {from, to, pixelFrom, pixelTo});
    this.a = this.log ? Math.log10(from) : from;
    this.b = this.log ? Math.log10(to) : to;
    if (!(this.b > this.a)) this.b = this.a + 1;
    this.factor = (pixelTo - pixelFrom) / (this.b - this.a);
  }
  pixel(value) {
    const v = this.log ? Math.log10(Math.max(value, 1e-300)) : value;
    return this.pixelFrom + (v - this.a) * this.factor;
  }
  value(pixel) {
    const v = this.a + (pixel - this.pixelFrom) / this.factor;
    return this.log ? 10 ** v : v;
  }
  // Round numbers of `unit`: of bytes, those of a power of 1024.
  ticks(count, unit = "") {
    if (this.log) return this.logTicks(count);
    const size = unit === "bytes" ? BINARY.find(([one]) => one <= this.to)?.[0] ?? 1 : 1;
    return linearTicks(this.from / size, this.to / size, count).map((tick) => tick * size);
  }
  logTicks(count) {
    const decades = this.b - this.a;
    if (decades < 0.7) return linearTicks(this.from, this.to, count);
    const steps = decades < 2 ? [1, 2, 5] : [1], every = Math.max(1, Math.ceil(decades / count));
    const ticks = [];
    for (let power = Math.floor(this.a); power <= this.b; power += every)
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= this.from && value <= this.to) ticks.push(value);
      }
    return ticks;
  }
}

function linearTicks(from, to, count) {
  const rough = (to - from) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? power;
  const ticks = [];
  for (let i = Math.ceil(from / step); i * step <= to && ticks.length < 50; ++i) ticks.push(i * step);
  return ticks;
}
