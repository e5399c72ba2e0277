// A line through points from left to right, without those that nobody would miss: less than a third of a pixel away from
// the line. What a browser without a GPU draws takes as long as it has points.
const UNSEEN = 0.3;  // pixels

class ThinnedPath {
  constructor() {
    this.path = new Path2D();
    this.points = 0;
    this.lift();
  }

  // The next point is not connected with the previous ones.
  lift() {
    this.done();
    this.isDown = false;
  }

  // A line from `x`, `y` on whose slope is from `least` to `most` passes all points since then closely enough.
  to(x, y) {
    if (!this.isDown) {
      this.path.moveTo(x, y);
      this.isDown = true;
      this.from(x, y);
      ++this.points;
      return;
    }
    const width = x - this.x, slope = (y - this.y) / width;
    if (this.isWaiting && !(width > 0 && slope >= this.least && slope <= this.most)) {
      this.done();
      this.to(x, y);
      return;
    }
    if (width > 0) {
      this.least = Math.max(this.least, slope - UNSEEN / width);
      this.most = Math.min(this.most, slope + UNSEEN / width);
    }
    this.nextX = x;
    this.nextY = y;
    this.isWaiting = true;
  }

  from(x, y) {
    this.x = x;
    this.y = y;
    this.least = -Infinity;
    this.most = Infinity;
    this.isWaiting = false;
  }

  // The path with its last point.
  done() {
    if (this.isWaiting) {
      this.path.lineTo(this.nextX, this.nextY);
      ++this.points;
      this.from(this.nextX, this.nextY);
    }
    return this.path;
  }
}
