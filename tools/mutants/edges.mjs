/** The adapters, the control server and the publisher: what is read of a connection, and how long it may take. */
import { weaken } from './mutant.mjs'

export const EDGES = [
  ...weaken('src/adapters/node-request.ts', 'test/adapters/node.test.ts', [
    ['two Hosts are no reading', 'if (host !== undefined) return undefined\n', '', 'test/adapters/battery.test.ts'],
    [
      'a malformed Host is no reading',
      'return isHost(host) ? host : undefined',
      'return host',
      'test/adapters/battery.test.ts',
    ],
    [
      'a target holds only what a URI may hold',
      'if (target === undefined || !TARGET.test(target)) return undefined',
      'if (target === undefined) return undefined',
      'test/adapters/battery.test.ts',
    ],
    [
      'only HTTP/1.0 goes without a Host',
      `httpVersionMajor === 1 && httpVersionMinor === 0 ? 'localhost' : undefined`,
      `httpVersionMajor === 1 ? 'localhost' : undefined`,
      'test/adapters/node.test.ts',
    ],
    [
      'header lines that Node has dropped are noticed',
      'return lines > 0 && rawHeaders.length >= lines * 2',
      'return false',
      'test/adapters',
    ],
    ['a request lives as long as its response', 'requests.set(res, request)', '', 'test/adapters/abort.test.ts'],
    [
      'a method that scripts may not use is seen',
      'if (FORBIDDEN_METHODS.has(method))',
      'if (false)',
      'test/adapters/battery.test.ts',
    ],
    ['a body is read as it is asked for', 'req.pause()\n      controller.enqueue(chunk)', 'controller.enqueue(chunk)'],
  ]),
  ...weaken('src/adapters/handler.ts', 'test/adapters/node.test.ts', [
    [
      'a target that begins with two slashes is nobody’s',
      `if (path.startsWith('//') || hasDotSegment(path)) return 'nobody'`,
      `if (hasDotSegment(path)) return 'nobody'`,
    ],
    [
      'a target with dot segments is nobody’s',
      `if (path.startsWith('//') || hasDotSegment(path)) return 'nobody'`,
      `if (path.startsWith('//')) return 'nobody'`,
      'test/adapters/battery.test.ts',
    ],
    [
      'a respelled target is nobody’s',
      `return isRespelled(path) ? 'nobody' : 'host'`,
      `return 'host'`,
      'test/adapters/battery.test.ts',
    ],
    [
      'a backslash is no reading',
      String.raw`return path.includes('\\') ? undefined : path`,
      'return path',
      'test/adapters/handler.test.ts',
    ],
    [
      'a handler that answers nothing has failed',
      'if (response instanceof Response) return response',
      'return response',
      'test/adapters/battery.test.ts',
    ],
  ]),
  ...weaken('src/adapters/node-handler.ts', 'test/adapters/allowed-hosts.test.ts', [
    ['a foreign name is refused', 'if (refused !== undefined) return', 'if (false) return'],
  ]),
  ...weaken('src/adapters/node-answer.ts', 'test/adapters/reply.test.ts', [
    [
      'chunks that nobody takes are given back',
      'if (hasResponseEnded(exchange)) return abandon(body)',
      'if (hasResponseEnded(exchange)) return',
    ],
    [
      'chunks are written as fast as they are taken',
      'if (!res.write(value)) await drained(exchange)',
      'res.write(value)',
      'test/cooperative-site/node.test.ts',
    ],
    ['a client that leaves gives its chunks back', 'onResponseEnd(exchange, () => abandon(body))', ''],
  ]),
  ...weaken('src/adapters/node-turns.ts', 'test/adapters/node-turns.test.ts', [
    ['a turn that throws holds up no other', '} finally {', '} catch (error) {\n      throw error'],
  ]),
  ...weaken('src/adapters/node-bounds.ts', 'test/adapters/node-server.test.ts', [
    ['connections of a server are bounded', 'if (open.size >= connections) {', 'if (false) {'],
    [
      'pipelined requests are bounded',
      'if (waiting.length === pipelined) {',
      'if (false) {',
      'test/adapters/node-server.test.ts',
    ],
    [
      'one request of a connection is answered after the other',
      'if (waiting.length === 1) listener(req, res)',
      'listener(req, res)',
      'test/adapters/node-server.test.ts',
    ],
    [
      'who takes nothing is cut off',
      'if (waits && socket.writableLength === 0) socket.setTimeout(stallMs)',
      'if (waits) socket.setTimeout(stallMs)',
    ],
    ['the connection that makes room is idle', '[...open].find(isIdle) ??', ''],
    ['one that has sent ahead makes room', '?? [...open].find(isAhead)', '', 'test/adapters/node-bursts.test.ts'],
    [
      'what was sent ahead waits for its turn',
      '} else takeTurn(() => socket.destroyed || waiting[0]?.())',
      '} else waiting[0]?.()',
      'test/adapters/node-bursts.test.ts',
    ],
    [
      'the last request of a connection has its body read',
      'connection.last?.complete === true',
      'connection.last !== undefined',
      'test/adapters/node-bursts.test.ts',
    ],
  ]),
  ...weaken('src/adapters/node-input.ts', 'test/adapters/node-bursts.test.ts', [
    ['a few KiB are parsed in a turn', 'at < Math.min(chunk.length, TURN_BYTES)', 'at < chunk.length'],
    [
      'Node does not resume a connection before its turn',
      'isHeld ? socket : resume.call(socket)',
      'resume.call(socket)',
    ],
    ['nothing behind the last request is parsed', '&& !isFull() && !socket', '&& !socket'],
    ['nothing behind what cannot be read is parsed', '&& !socket.destroyed) {', ') {'],
    ['a parser is handed a head at a time', 'head < 0 ? chunk.length : head + HEAD_END.length', 'chunk.length'],
    ['what is paused is handed nothing', '&& isWanted && !isFull()', '&& !isFull()'],
  ]),
  ...weaken('src/adapters/node-listen.ts', 'test/adapters/node-server.test.ts', [
    ['Node drops no header lines', 'server.maxHeadersCount = 0', '', 'test/control-server/server.test.ts'],
    ['a close cuts off what does not end', 'cut = held.cut()', '', 'test/control-server/server.test.ts'],
    [
      'a connection has so long for its headers',
      'headersTimeout: Math.min(headersMs, requestMs),',
      'headersTimeout: 0,',
      'test/adapters/node-slow.test.ts',
    ],
    [
      'a connection has so long for its request',
      'requestTimeout: requestMs,',
      'requestTimeout: 0,',
      'test/adapters/node-slow.test.ts',
    ],
    [
      'a connection that says nothing more is closed',
      'keepAliveTimeout: keepAliveMs,',
      'keepAliveTimeout: 600_000,',
      'test/control-server/server.test.ts',
    ],
  ]),
  ...weaken('src/contract/options.ts', 'test/contract/options.test.ts', [
    ['an option that there is not is refused', 'if (value !== undefined && !Object.hasOwn(shape, name))', 'if (false)'],
    ['an option that is missing is refused', 'if (value === undefined && !isNeeded)', 'if (value === undefined)'],
    [
      'an option that cannot be used is refused',
      'if (value === undefined || !test(value))',
      'if (value === undefined)',
    ],
    ['an address that is refused is not repeated', `isPrivate && typeof value === 'string'`, 'false'],
  ]),
  ...weaken('src/relay-client/base-url.ts', 'test/contract/options.test.ts', [
    ['routes begin where HTTP is spoken', '/^https?:$/.test(protocol)', 'protocol'],
    ['an address carries no credentials', `&& username === '' && password === ''`, ''],
    ['a path can be put behind an address', ' || /[?#]/.test(value)', ''],
  ]),
  ...weaken('src/http/auth.ts', 'test/contract/options.test.ts', [
    [
      'a key that nobody has set lets nobody in',
      `if (Object.hasOwn(options, 'key') && key === undefined)`,
      'if (false)',
    ],
  ]),
  ...weaken('src/async/hook.ts', 'test/async/hook.test.ts', [
    ['errors of their own fill no log', 'if (++told <= PER_SECOND)', ''],
    ['an error that nobody asked to hear of leaves a trace', 'hook ?? createConsoleHook()', 'hook ?? (() => {})'],
  ]),
  ...weaken('src/control-server/guard.ts', 'test/control-server/guard.test.ts', [
    ['a caller is on this machine', `if (!isLoopbackAddress(remoteAddress)) return 'not_loopback'`, ''],
    ['a forwarded request is refused', 'FORWARDING.test(name.toLowerCase())', 'false'],
    ['a Host names this server and its port', `origins: [], port })`, 'origins: [] })'],
    ['a page is refused by its Origin', `given('origin').length > 0 ||`, ''],
    [
      'every Sec-Fetch-Site is looked at',
      `!given('sec-fetch-site').every(`,
      `!given('sec-fetch-site').slice(0, 1).every(`,
    ],
    [
      'the control token is compared in constant time',
      'timingSafeEqual(digest(given), wanted)',
      'digest(given).equals(wanted)',
      'test/http/constant-time.test.ts',
    ],
    ['two tokens are none', 'more.length === 0 && isToken(authorization)', 'isToken(authorization)'],
  ]),
  ...weaken('src/control-server/server.ts', 'test/control-server/server.test.ts', [
    ['the control server binds loopback only', 'if (!isLoopbackHost(host)) throw', 'if (false) throw'],
    ['a token is long enough', 'token.length < TOKEN_LENGTH ||', ''],
    [
      'a registry has until the deadline',
      'return deadline.race(handle({ targets, request, params, signal: deadline.signal }))',
      'return handle({ targets, request, params, signal: deadline.signal })',
      'test/control-server/routes.test.ts',
    ],
    [
      'a site id is one path segment',
      'checkParam: checkSegmentId',
      'checkParam: () => undefined',
      'test/control-server/routes.test.ts',
    ],
    ['a target is read as it was sent', ', splitTarget(url))', ')', 'test/control-server/routes.test.ts'],
    ['no query is taken', 'parseQuery(NoQuery, search)', '', 'test/control-server/routes.test.ts'],
  ]),
  ...weaken('src/control-server/routes.ts', 'test/control-server/routes.test.ts', [
    [
      'a site of another owner stays',
      'sites.delete(params.site_id as string, { owner })',
      'sites.delete(params.site_id as string)',
    ],
    [
      'a site publishes what it has declared',
      'site.event_names.length > 0 && !site.event_names.includes(name)',
      'false',
    ],
  ]),
  ...weaken('src/publisher/runtime.ts', 'test/publisher/publisher.test.ts', [
    ['a redirect gets no credentials', `redirect: 'manual'`, `redirect: 'follow'`],
    [
      'an application names the URL of its relay',
      'baseUrl: needed(BASE_URL)',
      "baseUrl: needed({ said: 'given', test: () => true })",
      'test/contract/options.test.ts',
    ],
  ]),
  ...weaken('src/relay-client/answer.ts', 'test/publisher/publisher.test.ts', [
    ['an answer of a relay is bounded', 'if (bytes > maxBytes) return', 'if (false) return'],
    ['an id stays in its segment', `value === '' || value === '.' || value === '..'`, 'false'],
  ]),
  ...weaken('src/relay-client/shape.ts', 'test/publisher/remote-sites.test.ts', [
    [
      'an answer is believed when all of it is as it should be',
      'Object.entries<Check<unknown>>(fields).every(([name, is]) => is(value[name]))',
      'Object.entries<Check<unknown>>(fields).some(([name, is]) => is(value[name]))',
    ],
  ]),
  ...weaken('src/publisher/remote-sites.ts', 'test/publisher/remote-sites.test.ts', [
    ['a route that there is not says nothing of a site', ` && codeOf(body) === 'not_found'`, ''],
  ]),
  ...weaken('src/publisher/publisher.ts', 'test/publisher/publisher.test.ts', [
    [
      'a refusal is final',
      `error instanceof RelayError && (error.status === 503 || error.code === 'unreachable' || error.code === 'timeout')`,
      'error instanceof RelayError',
    ],
    ['an option of a publication that is misspelt is refused', 'checkOptions(publishOptions, PUBLISH)', ''],
  ]),
  ...weaken('src/publisher/relay-error.ts', 'test/publisher/publisher.test.ts', [
    ['an application is told what the relay could not read', '{}, fieldErrorsOf(body))', '{})'],
  ]),
  ...weaken('src/browser/problem.ts', 'test/browser/invoke.test.ts', [
    ['a viewer is told what the relay could not read', 'outcome, { errors: fieldErrorsOf(problem) })', 'outcome)'],
    [
      'a failure of whoever stands in between leaves open whether an action ran',
      `(status >= 500 && !isText(problem?.code))`,
      'false',
    ],
    ['a success that cannot be read leaves open whether an action ran', 'response.ok || ', ''],
  ]),
  ...weaken('src/relay-client/field-errors.ts', 'test/browser/invoke.test.ts', [
    ['what a client is told was not read is short', ' && value.length <= PROBLEM_LENGTH', ''],
    ['what a client is told was not read is little', '.slice(0, ERRORS_SHOWN)', ''],
  ]),
  ...weaken('src/browser/invoke.ts', 'test/browser/invoke.test.ts', [
    ['an empty key is not taken for none', 'if (idempotencyKey !== undefined)', 'if (idempotencyKey)'],
  ]),
  ...weaken('src/browser/client.ts', 'test/browser/subscribe.test.ts', [
    ['who subscribes hears events', 'onEvent: needed(FUNCTION)', 'onEvent: FUNCTION'],
    [
      'a viewer asks what answers by HTTP',
      'baseUrl: needed(BASE_URL_OR_PATH)',
      'baseUrl: needed(TEXT)',
      'test/contract/options.test.ts',
    ],
  ]),
  ...weaken(
    'src/async/time-limit.ts',
    ['test/async/time-limit.test.ts', 'test/publisher/publisher.test.ts'],
    [
      [
        'who does not answer is given up',
        'const timer = setTimeout(() => controller.abort(late()), ms)',
        'const timer = undefined',
      ],
      ['a timer goes with the work', 'clearTimeout(timer)', '', 'test/async/time-limit.test.ts'],
    ],
  ),
]
