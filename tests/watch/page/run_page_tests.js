#!/usr/bin/env node
// Runs the tests of the scripts of watch's page: run_page_tests.js [--page FOLDER] [PART OF A NAME]. Exit 1: some failed, as listed.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const given = process.argv.slice(2);
const at = given.indexOf("--page");
const folder = at >= 0 ? given.splice(at, 2)[1] : path.join(__dirname, "../../../src/watch/page");

const failed = [];
let count = 0;
(async () => {
  for (const file of fs.readdirSync(__dirname).filter((name) => name.endsWith("_test.js")).sort())
    for (const [name, test] of Object.entries(require(path.join(__dirname, file))(folder))) {
      if (given.length && !name.includes(given[0])) continue;
      ++count;
      try {
        await test();
      } catch (error) {
        failed.push(name);
        console.log(`[  FAILED  ] ${file.replace("_test.js", "")}.${name.replaceAll(" ", "_")}\n${error.stack}`);
      }
    }
  console.log(`${count} tests of the page's scripts, ${failed.length} failed`);
  process.exit(failed.length || !count ? 1 : 0);
})();
