// The kernel of js_repl: it reads lines of JSON from descriptor 3 and writes such lines to 4.
// What code prints goes to descriptors 1 and 2, which are one pipe.
(() => {
  const fs = require('node:fs');
  const net = require('node:net');
  const os = require('node:os');
  const path = require('node:path');
  const util = require('node:util');
  const { AsyncLocalStorage } = require('node:async_hooks');
  const { createRequire } = require('node:module');
  const { fileURLToPath } = require('node:url');
  const { Session } = require('node:inspector');

  const largestImage = 20 * 1024 * 1024;
  const flushWait = 1000;

  const input = new net.Socket({ fd: 3, readable: true, writable: false });
  const output = new net.Socket({ fd: 4, readable: false, writable: true });
  const { stdout, stderr } = process;
  const print = stdout.write.bind(stdout);
  const complain = stderr.write.bind(stderr);
  const send = (line) => output.write(JSON.stringify(line) + '\n');

  const session = new Session();
  session.connect();
  const post = (method, params) => new Promise((resolve, reject) => {
    session.post(method, params, (err, result) => (err ? reject(err) : resolve(result)));
  });

  // Calls of the host. Code that goes on after its cell has ended makes none.
  const cells = new AsyncLocalStorage();
  const open = new Map();
  let current = 0;
  let asked = 0;

  const ask = (line) => {
    const cell = cells.getStore() ?? current;
    if (cell !== current || current === 0) {
      return Promise.reject(new Error('not done: the js_repl call that this code belongs to has ended. Await what the code does.'));
    }
    const call = ++asked;
    const answered = new Promise((resolve, reject) => open.set(call, { resolve, reject }));
    open.get(call).answered = answered.catch(() => {});
    send({ ...line, cell, call });
    return answered;
  };

  const take = ({ id, value, error }) => {
    const waiting = open.get(id);
    open.delete(id);
    if (waiting === undefined) return;
    if (error !== undefined) waiting.reject(new Error(error));
    else waiting.resolve(value);
  };

  const tool = (name, args = {}) => {
    const freeform = typeof args === 'string';
    return ask({ type: 'tool', name: String(name), input: freeform ? args : JSON.stringify(args), freeform });
  };

  const sh = async (command, options = {}) => {
    let ran = await tool('exec_command', { yield_time_ms: 30000, ...options, cmd: String(command) });
    let all = ran.output ?? '';
    while (ran.session_id !== undefined && ran.exit_code === undefined) {
      ran = await tool('write_stdin', { session_id: ran.session_id, chars: '', yield_time_ms: 30000 });
      all += ran.output ?? '';
    }
    return { stdout: all, stderr: '', exitCode: ran.exit_code };
  };

  const bytesOf = (source) => {
    if (typeof source === 'string' || source instanceof URL) {
      const text = String(source);
      const data = /^data:image\/[a-z.+-]+;base64,/.exec(text);
      if (data) return Buffer.from(text.slice(data[0].length), 'base64');
      if (/^(data|https?):/.test(text)) throw new Error('emitImage takes a data URL with base64 (data:image/png;base64,…), a path or bytes');
      return fs.readFileSync(text.startsWith('file:') ? fileURLToPath(text) : text);
    }
    if (ArrayBuffer.isView(source)) return Buffer.from(source.buffer, source.byteOffset, source.byteLength);
    if (source instanceof ArrayBuffer) return Buffer.from(source);
    if (typeof source?.image_url === 'string') return bytesOf(source.image_url);
    if (source?.bytes !== undefined) return bytesOf(source.bytes);
    if (typeof source?.data === 'string') return Buffer.from(source.data, 'base64');
    throw new Error('emitImage takes a data URL, a path, bytes, or what view_image gave');
  };

  const emitImage = async (source) => {
    const bytes = bytesOf(await source);
    if (bytes.length > largestImage) throw new Error(`the image has more than ${largestImage >> 20} MiB; make it smaller`);
    return ask({ type: 'image', input: bytes.toString('base64') });
  };

  const helpers = { tmpDir: os.tmpdir(), sh, tool, emitImage };
  const codex = { ...helpers, import: (name) => import(name) };
  for (const [name, value] of Object.entries({ codex, ...helpers, require: createRequire(path.join(process.cwd(), 'js_repl')) })) {
    Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  }

  // V8 gives code of the inspector no way to import; Node has one for code without an origin,
  // by a mark on the global object that only contexts of vm get. Without it, codex.import is left.
  const letImport = () => {
    try {
      const { internalBinding } = require('internal/test/binding');
      const mark = internalBinding('util').privateSymbols.host_defined_option_symbol;
      const way = internalBinding('symbols').vm_dynamic_import_main_context_default;
      if (mark !== undefined && way !== undefined) globalThis[mark] = way;
    } catch { /* an older or a newer Node */ }
  };
  letImport();

  // valueOf gets the value that an answer of the inspector stands for.
  const holder = {};
  let holderId;
  const valueOf = async (remote) => {
    if (remote.type === 'undefined') return undefined;
    const { objectId, unserializableValue, value } = remote;
    const argument = objectId ? { objectId } : unserializableValue ? { unserializableValue } : { value };
    await post('Runtime.callFunctionOn', { objectId: holderId, functionDeclaration: 'function (v) { this.value = v }', arguments: [argument] });
    const got = holder.value;
    delete holder.value;
    return got;
  };

  const shown = (value) => {
    if (typeof value === 'string') return value;
    try {
      return util.inspect(value, { breakLength: 120 });
    } catch (err) {
      return `[a value that cannot be shown: ${err?.message}]`;
    }
  };

  const noImport = /Invalid host defined options|ERR_VM_DYNAMIC_IMPORT_CALLBACK_MISSING/;

  const uncaught = (thrown, line) => {
    let text = shown(thrown);
    if (thrown instanceof Error) {
      const ours = text.search(/\n\s+at (Session\.post|new Promise|\S+ \(node:inspector|.*\[eval\])/);
      if (ours >= 0) text = text.slice(0, ours);
      if (thrown instanceof SyntaxError && line !== undefined) text += `\n    in line ${line + 1}`;
      if (noImport.test(text)) text += '\nThis version of Node has no import() here: use await codex.import(name), or require(name).';
    }
    return `Uncaught ${text}`;
  };

  process.on('uncaughtException', (err) => complain(uncaught(err) + '\n'));

  const evaluate = async (cell, code) => {
    const { result, exceptionDetails } = await cells.run(cell, () => post('Runtime.evaluate', {
      expression: code, replMode: true, awaitPromise: true, userGesture: true, objectGroup: 'cell',
    }));
    if (exceptionDetails) {
      const thrown = exceptionDetails.exception ? await valueOf(exceptionDetails.exception) : exceptionDetails.text;
      return { failed: true, text: uncaught(thrown, exceptionDetails.lineNumber) };
    }
    const value = await valueOf(result);
    return { failed: false, text: value === undefined ? undefined : shown(value) };
  };

  const flushed = (write, text) => new Promise((resolve) => {
    const late = setTimeout(resolve, flushWait);
    write(text, () => { clearTimeout(late); resolve(); });
  });

  // run runs a cell. mark says behind what was printed that nothing more comes of it.
  const run = async ({ cell, code, mark }) => {
    current = cell;
    let done;
    try {
      done = await evaluate(cell, code);
    } catch (err) {
      done = { failed: true, text: uncaught(err) };
    }
    current = 0;
    await Promise.all([...open.values()].map(({ answered }) => answered));
    await post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
    await post('Runtime.discardConsoleEntries');
    await flushed(complain, '');
    await flushed(print, (done.text === undefined ? '' : done.text.replace(/\n?$/, '\n')) + mark);
    send({ type: 'done', cell, failed: done.failed });
  };

  const begin = async () => {
    const name = 'js_repl holder';
    globalThis[name] = holder;
    holderId = (await post('Runtime.evaluate', { expression: `globalThis[${JSON.stringify(name)}]` })).result.objectId;
    delete globalThis[name];
    let rest = '';
    input.setEncoding('utf8');
    input.on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines.map((l) => JSON.parse(l))) {
        if (line.type === 'run') run(line);
        else take(line);
      }
    });
    input.on('end', () => process.exit());
    input.on('error', () => process.exit());
    output.on('error', () => process.exit());
  };
  begin();
})();
