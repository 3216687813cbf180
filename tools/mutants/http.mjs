/** Who may ask, how a target is read, and what of a query, a cursor, a body and an answer is believed. */
import { weaken } from './mutant.mjs'

export const HTTP = [
  ...weaken('src/http/keys.ts', 'test/http/auth.test.ts', [
    [
      'a key is compared in constant time',
      'for (let i = 0; i < secret.length; i++) difference |=',
      'for (let i = 0; i < secret.length && difference === 0; i++) difference |=',
      'test/http/constant-time.test.ts',
    ],
    [
      'all keys are looked at, wherever one fits',
      'for (const { key, principal } of ring) if (equalsSecret(given, key)) found = principal',
      'for (const { key, principal } of ring) if (!found && equalsSecret(given, key)) found = principal',
      'test/http/constant-time.test.ts',
    ],
    [
      'a key that begins as the right one does is another',
      'let difference = given.length ^ secret.length',
      'let difference = 0',
    ],
    ['a key that a header cannot carry is refused', 'if (!form.pattern.test(key)) throw', 'if (false) throw'],
    ['a key names one principal', 'if ((names.get(key) ?? name) !== name) throw', 'if (false) throw'],
    ['a name of a key is an id', 'if (reason !== undefined) throw', 'if (false) throw'],
    ['a ring without keys is an error', 'if (entries.length === 0) throw', 'if (false) throw'],
  ]),
  ...weaken('src/http/auth.ts', 'test/http/auth.test.ts', [
    [
      'a blank key of the environment is none',
      `fromEnvironment !== undefined && fromEnvironment.trim() !== ''`,
      'fromEnvironment !== undefined',
    ],
    [
      'without a key a bind of unknown reach is refused',
      'strict && (host === undefined || !isLoopbackHost(host))',
      'strict && host !== undefined && !isLoopbackHost(host)',
    ],
    [
      'without a key a loopback bind answers loopback names alone',
      'return host !== undefined && isLoopbackHost(host) ? loopbackAuth() : noopAuth()',
      'return noopAuth()',
      'test/http/guard.test.ts',
    ],
    [
      'an explicit key that is blank is an error',
      'if (key !== undefined) return apiKeyAuth(key)',
      'if (key) return apiKeyAuth(key)',
    ],
  ]),
  ...weaken('src/http/target.ts', 'test/http/target.test.ts', [
    ['a prefix is spelled as a URL spells it', '`/${encodeSegment(segment)}`', '`/${encodeURIComponent(segment)}`'],
    ['a prefix keeps the spaces at its end', '}/`).pathname.slice(1, -1)', '}`).pathname.slice(1)'],
    [
      'a prefix ends at a segment',
      `pathname.startsWith(path) && (pathname.length === path.length || pathname[path.length] === '/')`,
      'pathname.startsWith(path)',
    ],
    [
      'a path with an empty segment is not ours',
      '!hasEmptySegment(rest) && !hasDotSegment(rest)',
      '!hasDotSegment(rest)',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'a path with a dot segment is not ours',
      '!hasEmptySegment(rest) && !hasDotSegment(rest)',
      '!hasEmptySegment(rest)',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'a prefix holds no control characters',
      String.raw`if (/\p{Cc}/u.test(decoded)) return refuse('must not contain control characters')`,
      '',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'a prefix has no empty or dot segments',
      `if (decoded === '' || decoded === '.' || decoded === '..')`,
      'if (false)',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'a segment is decoded once',
      'return decodeURIComponent(segment)',
      'return decodeURIComponent(decodeURIComponent(segment))',
      'test/http/match.test.ts',
    ],
  ]),
  ...weaken('src/http/match.ts', 'test/http/match.test.ts', [
    ['a slash at the end names nothing', `(path.length > 1 && path.endsWith('/')) ||`, ''],
    ['a path in another spelling matches nothing', '|| hasRespelledLiteral(path)', ''],
    [
      'a literal of a route has one spelling',
      'prefix.owns(pathname) && !hasRespelledLiteral(rest(pathname))',
      'prefix.owns(pathname)',
      'test/diagnostics/paths.test.ts',
    ],
  ]),
  ...weaken('src/http/engine.ts', 'test/diagnostics/paths.test.ts', [
    [
      'a URL is bounded',
      `if (url.length > URL_LENGTH) throw new ProblemError('uri_too_long')`,
      '',
      ['test/diagnostics/paths.test.ts', 'test/cooperative-site/router.test.ts'],
    ],
    [
      'only the methods of a route are answered',
      'const handler = handlers.get(method) as HandlerOf<R> | undefined',
      'const handler = (handlers.get(method) ?? [...handlers.values()][0]) as HandlerOf<R> | undefined',
      ['test/diagnostics/paths.test.ts', 'test/diagnostics/table.test.ts'],
    ],
    [
      'what goes on without an end is not begun for a HEAD',
      `method === 'GET' && !endless`,
      `method === 'GET'`,
      'test/http/engine.test.ts',
    ],
  ]),
  ...weaken(
    'src/http/spelling.ts',
    ['test/adapters/battery.test.ts'],
    [
      ['an encoded dot is a dot', String.raw`(?:\.|%2e){1,2}`, String.raw`\.{1,2}`, 'test/diagnostics/paths.test.ts'],
      [
        'an encoded letter is another spelling',
        'hasEmptySegment(path) || hasDotSegment(path) || ENCODED_UNRESERVED.test(path)',
        'hasEmptySegment(path) || hasDotSegment(path)',
      ],
      [
        'an empty segment is another spelling',
        'hasEmptySegment(path) || hasDotSegment(path) || ENCODED_UNRESERVED.test(path)',
        'hasDotSegment(path) || ENCODED_UNRESERVED.test(path)',
      ],
    ],
  ),
  ...weaken('src/http/loopback.ts', 'test/http/guard.test.ts', [
    ['a name that begins like a loopback address is none', '25[0-5])){3}$/', '25[0-5])){3}/'],
  ]),
  ...weaken('src/http/guard.ts', 'test/http/guard.test.ts', [
    ['two Hosts are refused', 'host === undefined || hosts.length > 0 ||', 'host === undefined ||'],
    [
      'a loopback name has the port of the socket',
      'hasLoopback && isLoopbackHost(name) && isOwnPort',
      'hasLoopback && isLoopbackHost(name)',
    ],
    ['an Origin must be allowed too', `return origins.every(isOwn) ? undefined : 'bad_origin'`, 'return undefined'],
    ['every Origin must be allowed', 'origins.every(isOwn)', 'origins.slice(0, 1).every(isOwn)'],
  ]),
  ...weaken('src/http/query.ts', 'test/http/query.test.ts', [
    [
      'an unknown parameter is refused',
      'if (!Object.hasOwn(fields, name)) {',
      'if (!Object.hasOwn(fields, name)) continue\n    if (!Object.hasOwn(fields, name)) {',
    ],
    [
      'a name of a prototype is unknown',
      'if (!Object.hasOwn(fields, name)) {',
      'if (!(name in fields)) {',
      'test/http/query.test.ts',
    ],
    ['an unknown name is not repeated to its sender', `PLAIN_NAME.test(name) ? name : '(unreadable)'`, 'name'],
    ['a parameter is not repeated', `else if (Object.hasOwn(values, name)) refuse(name, 'must not be repeated')`, ''],
    [
      'a parameter is not empty',
      `else if (value === '') refuse(name, 'must not be empty')`,
      '',
      'test/diagnostics/queries.test.ts',
    ],
    [
      'a number is written as one',
      String.raw`/^[1-9][0-9]{0,9}$/.test(text)`,
      '!Number.isNaN(Number(text))',
      'test/diagnostics/queries.test.ts',
    ],
    [
      'only true is true and only false is false',
      `text === 'true' ? true : text === 'false' ? false : text`,
      `text === 'true'`,
      'test/diagnostics/queries.test.ts',
    ],
  ]),
  ...weaken('src/http/cursor.ts', 'test/http/cursor.test.ts', [
    ['a cursor is held against its list', '|| toCursor(identity, token) !== cursor', ''],
    ['a cursor is bound to its list', 'digest64(identity + token)', 'digest64(token)'],
    [
      'a cursor is bound to its filters',
      'sorted(params), sorted(filters), deployment.id',
      'sorted(params), deployment.id',
    ],
    ['a cursor is bound to its deployment', ', deployment.id, deployment.mode]', ']'],
    [
      'a token over its bound is a fault',
      'if (bytes > TOKEN_BYTES) throw',
      'if (false) throw',
      'test/diagnostics/cursors.test.ts',
    ],
  ]),
  ...weaken('src/http/encode.ts', 'test/http/encode.test.ts', [
    [
      'what a schema does not name does not leave',
      'if (result.success) return JSON.stringify(result.data)',
      'if (result.success) return JSON.stringify(value)',
    ],
    ['an answer is bounded', 'if (length > BODY_LENGTH) throw', 'if (false) throw'],
    [
      'a record that can change is read anew',
      'if (isImmutable(record)) texts.set(record, made)',
      'texts.set(record, made)',
    ],
    ['a record with a function can change', `return typeof value !== 'function'`, 'return true'],
    [
      'a record with an accessor can change',
      `'value' in property && isImmutable(property.value)`,
      `!('value' in property) || isImmutable(property.value)`,
    ],
  ]),
  ...weaken('src/http/etag.ts', 'test/http/etag.test.ts', [
    ['no pair of surrogates is parted', '? to + 1 : to)', '? to : to)'],
    [
      'what a tag reads is of this text alone',
      'bytes.fill(0, written, written + 8)',
      'bytes.fill(0, written, written)',
    ],
    ['an instant of observation is not compared', "if (name === 'observed_at') return ''", ''],
  ]),
  ...weaken('src/http/json-scan.ts', 'test/http/json-scan.test.ts', [
    ['a text nests so deep', 'if (open.length > JSON_DEPTH) return', 'if (false) return'],
    ['a text holds so many objects and lists', 'if (++containers > CONTAINERS_MAX) return', 'if (false) return'],
    ['the second of two members has another name', `if (names === name) return 'must not name a member twice'`, ''],
    ['a later member has another name', `else if (names.has(name)) return 'must not name a member twice'`, ''],
    ['a name is what its escapes spell', String.raw`if (!raw.includes('\\')) return raw`, 'if (raw) return raw'],
    ['an escaped backslash escapes no quote', 'if ((at - before) % 2 === 0) return at', 'if (at === before) return at'],
  ]),
  ...weaken('src/http/body.ts', 'test/cooperative-site/router-messages.test.ts', [
    ['a body is JSON by its type', 'type === null || !JSON_TYPE.test(type) ||', ''],
    ['a body is never decompressed', `|| request.headers.has('content-encoding')`, ''],
    ['a body is counted as it is read', 'if (length > BODY_BYTES) {', 'if (false) {'],
    ['a body is well-formed UTF-8', `new TextDecoder('utf-8', { fatal: true })`, `new TextDecoder('utf-8')`],
    [
      'a text is refused for what it holds',
      'if (reason !== undefined) throw',
      'if (false) throw',
      'test/http/body.test.ts',
    ],
    [
      'the place of an error is not repeated to its sender',
      `PLAIN_PLACE.test(place) ? place : '(unreadable)'`,
      'place',
      'test/http/body.test.ts',
    ],
  ]),
  ...weaken('src/async/deadline.ts', 'test/http/deadline.test.ts', [
    [
      'an answer at hand after the deadline is late',
      'if (isLate()) throw this.signal.reason',
      '',
      ['test/diagnostics/blocking.test.ts', 'test/diagnostics/deadline.test.ts'],
    ],
    [
      'work that blocks until after the deadline is late',
      '(isLate() ? reject(this.signal.reason) : resolve(value))',
      'resolve(value)',
      ['test/diagnostics/blocking.test.ts', 'test/diagnostics/deadline.test.ts'],
    ],
    ['a client that leaves aborts the work', `else client.addEventListener('abort', leave, { once: true })`, ''],
    [
      'what has ended is not aborted later',
      'this.#over = true\n    clearTimeout(this.#timer)',
      'clearTimeout(this.#timer)',
    ],
  ]),
  ...weaken('src/http/event-stream.ts', 'test/http/event-stream.test.ts', [
    [
      'no field of a frame has a line break',
      String.raw`/[\r\n\0]/.test(value) || !value.isWellFormed()`,
      '!value.isWellFormed()',
    ],
    [
      'no field of a frame has a lone surrogate',
      String.raw`/[\r\n\0]/.test(value) || !value.isWellFormed()`,
      String.raw`/[\r\n\0]/.test(value)`,
    ],
    ['a frame has a name', `if (event === '') throw new TypeError('event must not be empty')`, ''],
  ]),
  ...weaken('src/http/respond.ts', 'test/cooperative-site/event-stream.test.ts', [
    ['nothing is pulled ahead of the reader', '{ highWaterMark: 0 },', '{ highWaterMark: 1 },'],
  ]),
  ...weaken('src/http/problem.ts', 'test/diagnostics/queries.test.ts', [
    ['a problem names so many errors', 'extra.errors.slice(0, ERRORS_SHOWN)', 'extra.errors'],
  ]),
  ...weaken('src/http/shorten.ts', 'test/diagnostics/inspector-answers.test.ts', [
    ['a list that is short says by which source', 'sources.length === 1 ?', 'false ?'],
  ]),
  ...weaken('src/views/reading.ts', 'test/diagnostics/inspector-answers.test.ts', [
    ['what a view reads as a page has a list', '!Array.isArray(page.items)', 'false'],
    ['what a view reads as a page says whether there is more', `typeof page.has_more !== 'boolean'`, 'false'],
  ]),
  ...weaken('src/http/read.ts', 'test/diagnostics/inspector-answers.test.ts', [
    [
      'a page may be of a class',
      'listed ? plainPage(answered, members) : (answered as Envelope)',
      'answered as Envelope',
    ],
    ['a page holds no more than its limit', 'page.items.length > limit', 'false'],
    ['a page that goes on says where', `typeof page.next_cursor !== 'string'`, 'false'],
    [
      'an inspector cannot change the filters of a cursor',
      'filter: { ...filters } as never',
      'filter: filters as never',
    ],
  ]),
  ...weaken('src/http/ask.ts', 'test/http/ask.test.ts', [
    [
      'the deadline of an ask is not shown',
      `Object.defineProperty(ask, DEADLINE, { value: deadline })`,
      `Object.defineProperty(ask, DEADLINE, { value: deadline, enumerable: true })`,
    ],
  ]),
]
