// What a script finds, made of the functions that the engine has registered. It takes what it needs
// of the language before the script can change it, and gives the engine its way in. All limits that
// matter are the engine's own; those here give errors that a script can catch.
(() => {
  'use strict'
  const { parse, stringify } = JSON
  const { freeze, setPrototypeOf, getOwnPropertyNames, defineProperty } = Object
  const { iterator, asyncIterator } = Symbol
  const { trunc } = Math
  const apply = Function.prototype.call.bind(Function.prototype.call)
  const { isFinite } = Number
  const startsWith = Function.prototype.call.bind(String.prototype.startsWith)
  const toLowerCase = Function.prototype.call.bind(String.prototype.toLowerCase)
  const slice = Function.prototype.call.bind(String.prototype.slice)
  const text = String

  const host = {}
  for (const name of ['call', 'item', 'stored', 'keep', 'timer', 'untimer', 'yields', 'ends', 'fails', 'floods']) {
    host[name] = globalThis['agent_' + name]
    delete globalThis['agent_' + name]
  }
  const limits = parse(globalThis.agent_limits)
  delete globalThis.agent_limits

  // fromAsync is Array.fromAsync, which the language has since ES2026.
  const fromAsync = async function fromAsync(items, map = undefined, self = undefined) {
    if (map !== undefined && typeof map !== 'function') throw new TypeError('the second argument of Array.fromAsync is a function')
    const made = typeof this === 'function' ? this : Array
    const add = (array, i, value) => defineProperty(array, i, { value, writable: true, enumerable: true, configurable: true })
    let i = 0
    if (items[asyncIterator] != null || items[iterator] != null) {
      const array = new made()
      for await (const item of items) {
        add(array, i, map ? await apply(map, self, item, i) : item)
        i++
      }
      array.length = i
      return array
    }
    const length = trunc(+items.length) || 0
    const array = new made(length > 0 ? length : 0)
    for (; i < length; i++) {
      const item = await items[i]
      add(array, i, map ? await apply(map, self, item, i) : item)
    }
    array.length = i
    return array
  }
  defineProperty(Array, 'fromAsync', { value: fromAsync, writable: true, configurable: true, enumerable: false })

  // Recursion without end, and no memory, are range errors in other engines.
  setPrototypeOf(InternalError.prototype, RangeError.prototype)
  InternalError.prototype.name = 'RangeError'

  const language = new Set([
    'Error', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError', 'AggregateError', 'Array', 'Object', 'Function', 'Iterator',
    'parseInt', 'parseFloat', 'isNaN', 'isFinite', 'decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'escape', 'unescape', 'Infinity', 'NaN',
    'undefined', 'eval', 'Number', 'Boolean', 'String', 'Math', 'Reflect', 'Symbol', 'globalThis', 'BigInt', 'Date', 'RegExp', 'JSON', 'Proxy', 'Map', 'Set',
    'WeakMap', 'WeakSet', 'ArrayBuffer', 'SharedArrayBuffer', 'Uint8ClampedArray', 'Int8Array', 'Uint8Array', 'Int16Array', 'Uint16Array', 'Int32Array',
    'Uint32Array', 'BigInt64Array', 'BigUint64Array', 'Float16Array', 'Float32Array', 'Float64Array', 'DataView', 'Atomics', 'Promise', 'WeakRef',
    'FinalizationRegistry', 'DisposableStack', 'AsyncDisposableStack', 'SuppressedError', 'Temporal', 'Intl',
  ])
  for (const name of getOwnPropertyNames(globalThis)) {
    if (!language.has(name)) delete globalThis[name]
  }

  const offer = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false })
  const waiting = { __proto__: null } // calls, by their number
  const timers = { __proto__: null }
  let calls = 0
  let underWay = 0
  let inputs = 0 // bytes of those under way
  let set = 0
  let setNow = 0

  const isObject = (value) => typeof value === 'object' && value !== null

  const shown = (value) => {
    if (typeof value === 'string') return value
    if (isObject(value) || typeof value === 'function') return text(stringify(value)) // undefined for a function
    return text(value)
  }

  const show = (kind, value) => {
    if (value.length > limits.shown) host.floods()
    host.item(kind, value)
  }

  const makeCall = (tool, input) => new Promise((resolve, reject) => {
    const isText = typeof input === 'string'
    const written = isText ? input : input === undefined ? '{}' : stringify(input)
    if (written === undefined) throw new TypeError(`tools.${tool} takes an object or a string`)
    if (written.length > limits.input) throw new RangeError(`the input of tools.${tool} has more than ${limits.input} bytes`)
    if (underWay >= limits.calls) throw new RangeError(`more than ${limits.calls} calls are under way: await some of them before you make more`)
    if (inputs + written.length > limits.inputs) throw new RangeError(`the inputs of the calls under way have more than ${limits.inputs} bytes: await some of them before you make more`)
    const id = ++calls
    underWay++
    inputs += written.length
    waiting[id] = { resolve, reject, size: written.length }
    host.call(id, tool, written, isText)
  })

  const imageURL = (value) => {
    if (isObject(value)) {
      if (value.type === 'image' && typeof value.data === 'string') return `data:${value.mimeType || value.mime_type || 'image/png'};base64,${value.data}`
      value = isObject(value.image_url) ? value.image_url.url : value.image_url
    }
    if (typeof value !== 'string') throw new TypeError('image takes a data URL, an object {image_url}, or an image block of an MCP result')
    if (startsWith(toLowerCase(slice(value, 0, 8)), 'http:') || startsWith(toLowerCase(slice(value, 0, 8)), 'https:')) {
      throw new TypeError('image takes data URLs only: nothing is fetched from http(s) addresses. Fetch the file with a tool and show that.')
    }
    if (!startsWith(toLowerCase(slice(value, 0, 5)), 'data:')) throw new TypeError('image takes a data URL: data:image/png;base64,...')
    return value
  }

  const keyOf = (key) => {
    if (typeof key !== 'string') throw new TypeError('the key of a stored value is a string')
    return key
  }

  offer('text', function text(value) { show('text', shown(value)) })
  offer('notify', function notify(value) { show('text', shown(value)) })
  offer('image', function image(value) { show('image', imageURL(value)) })
  offer('generatedImage', function generatedImage(value) {
    show('image', imageURL(value))
    if (isObject(value) && typeof value.output_hint === 'string') show('text', value.output_hint)
  })
  offer('audio', function audio(value) { host.item('audio', '') })
  offer('store', function store(key, value) {
    const written = stringify(value)
    if (written === undefined) throw new TypeError(`store: the value of ${stringify(keyOf(key))} is nothing that JSON can write; null empties it`)
    if (written.length > limits.value) throw new RangeError(`store: the value of ${stringify(keyOf(key))} has more than ${limits.value} bytes as JSON`)
    const problem = host.keep(keyOf(key), written)
    if (problem) throw new RangeError(`store: ${problem}`)
  })
  offer('load', function load(key) {
    const written = host.stored(keyOf(key))
    return written === null ? undefined : parse(written)
  })
  offer('setTimeout', function setTimeout(callback, delay, ...args) {
    if (typeof callback !== 'function') throw new TypeError('setTimeout takes a function')
    if (setNow >= limits.timers) throw new RangeError(`more than ${limits.timers} timers are set`)
    delay = +delay
    const id = ++set
    setNow++
    timers[id] = { callback, args }
    host.timer(id, isFinite(delay) && delay > 0 ? delay : 0)
    return id
  })
  offer('clearTimeout', function clearTimeout(id) {
    if (typeof id !== 'number' || timers[id] === undefined) return
    delete timers[id]
    setNow--
    host.untimer(id)
  })
  offer('exit', function exit() { host.ends() })
  offer('yield_control', function yield_control() { host.yields() })

  // fail ends the script with what it threw.
  const fail = (thrown) => {
    let words = 'an error that cannot be shown'
    let stack = ''
    try {
      words = text(thrown)
      if (isObject(thrown) && typeof thrown.stack === 'string') {
        if (thrown instanceof Error) stack = thrown.stack
        else words = thrown.stack
      }
    } catch {}
    try {
      host.fails(slice(words, 0, 65536), slice(stack, 0, 65536))
    } catch {
      host.fails('an error that cannot be shown', '')
    }
  }

  // start runs the script. missing are names that the script calls as methods of tools although
  // there is no such tool: the language's own error does not name them.
  const start = (names, missing, all) => {
    const none = {}
    for (const name of missing) {
      if (!(name in none)) defineProperty(none, name, { value: () => { throw new TypeError(`tools.${name} is not a function`) } })
    }
    const tools = { __proto__: freeze(none) }
    for (const name of names) tools[name] = { [name]: (input) => makeCall(name, input) }[name]
    offer('tools', freeze(tools))
    for (const tool of all) freeze(tool)
    offer('ALL_TOOLS', freeze(all))
    import('exec_main.mjs').then(() => host.ends(), fail)
  }

  const settle = (settled) => {
    for (let i = 0; i < settled.length; i++) { // by no iterator, which the script may have changed
      const { id, value, error } = settled[i]
      const call = waiting[id]
      if (call === undefined) continue
      delete waiting[id]
      underWay--
      inputs -= call.size
      if (error === undefined) {
        call.resolve(value)
        continue
      }
      call.reject(error)
    }
  }

  const fire = (ids) => {
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]
      const timer = timers[id]
      if (timer === undefined) continue
      delete timers[id]
      setNow--
      try {
        timer.callback(...timer.args)
      } catch (thrown) {
        fail(thrown)
      }
    }
  }

  return (kind, message) => {
    const given = parse(message)
    if (kind === 'start') start(given.names, given.missing, given.all)
    else if (kind === 'settle') settle(given)
    else fire(given)
  }
})()
