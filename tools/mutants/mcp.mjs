/** Who may let an agent look, what it is shown as what, and how much that may cost; what the commands of a terminal show. */
import { weaken } from './mutant.mjs'

const [CROWD, DOOR, HONEST, HOSTILE, STDIO, TOOLS] = ['crowd', 'door', 'honest', 'hostile', 'stdio', 'tools'].map(
  (name) => `test/mcp/${name}.test.ts`,
)

export const MCP = [
  ...weaken('src/contract/unseen.ts', HOSTILE, [
    ['fillers and variation selectors are seen', '\\p{DI}', ''],
    ['an empty cell is seen', '\\p{DI}\\u2800', '\\p{DI}'],
    ['only the first selector behind a pictograph stays', '(?<=\\p{ExtPict})', ''],
  ]),
  ...weaken('src/mcp/untrusted.ts', HOSTILE, [
    ['no id ends the fence around it', '`${UNSEEN.source}|<`', 'UNSEEN.source'],
    ['an agent is shown what nobody sees', '`${UNSEEN.source}|<`', "'<'"],
    [
      'a name of a member is shown as a value is',
      '[change(name), mapTexts(part, change)]',
      '[name, mapTexts(part, change)]',
    ],
    ['an id leads back as it was shown', 'String.fromCodePoint(point)', 'whole'],
    ['a number that is no character stays', 'point > 0x10ffff ? whole : ', ''],
  ]),
  ...weaken('src/mcp/untrusted.ts', HONEST, [
    ['no character is cut in two', `.replace(/<[^>]*$/, '')`, ''],
    ['words of a router are bounded as they are shown', 'whole.length <= most ? whole : ', 'true ? whole : '],
  ]),
  ...weaken('src/mcp/answer.ts', HONEST, [
    ['names of a router are bounded', '.slice(0, NAMES)', ''],
    ['what was cut is not complete', 'const complete = found.complete && !isCut', 'const complete = found.complete'],
    ['a part does not read as a total', `'NOT COMPLETE: a part, never a total.'`, `''`],
    ['no cursor passes over what was cut', 'isShort ? null : next_cursor', 'next_cursor'],
    ['an answer for an agent is bounded', 'if (used + size <= bytes) kept.push(record)', 'if (true) kept.push(record)'],
    ['what is left out of a record is named', 'left = shrunk.left', ''],
    ['names of what is left out are bounded', 'left.slice(0, NAMES_CUT)', 'left.slice()'],
    ['a sample of the newest keeps them', `end === 'first' ? records : records.toReversed()`, 'records'],
    ['a list says how many are shown', 'headlineOf(kept.length)', 'headlineOf(all.length)'],
  ]),
  ...weaken('src/mcp/tools/page.ts', HONEST, [
    ['a page with more behind it is a part', `has_more === true ? ['More records follow this page.'] : []`, '[]'],
    ['the last page is a part', `cursor === undefined ? [] : ['The pages before this one are not here.']`, '[]'],
    ['an aggregate that was cut short is a sample', 'if (complete !== false) return []', 'if (true) return []'],
    ['a record that is left out of a page is missed', `typeof omitted === 'number'`, 'false'],
    ['messages are a sample', 'isSampleOfNewest(page) ? [', 'false ? ['],
    ['kinds that nobody looked for are named', `kinds === '' ? [] : [`, 'true ? [] : ['],
  ]),
  ...weaken('src/mcp/tools/overview.ts', HONEST, [
    [
      'a part that nobody answered is told',
      '(part.notes?.(answer.value) ?? []) : [unknown(name, answer)]',
      '(part.notes?.(answer.value) ?? []) : []',
    ],
    ['an overview that was cut is one', '.partial()', ''],
    ['an overview counts what cannot be shown', '...omittedNotes(value), ', ''],
    ['an overview knows what nobody looked for', '...blindNotes(value)', '...[]'],
    ['what is no part of a deployment is not unknown', 'status === 501', 'false'],
  ]),
  ...weaken('src/mcp/tools/page.ts', DOOR, [
    [
      'somebody else says nothing of a record',
      `status === 404 && problem.startsWith('404 not_found:')`,
      'status === 404',
    ],
  ]),
  ...weaken('src/mcp/terse.ts', HONEST, [
    ['reasons of a refusal are counted', 'issues.slice(0, ISSUES)', 'issues'],
    ['names in a refusal are cut', 'shownWithin(place, WORDS / 2)', 'place'],
    ['words of a refusal are cut', 'message}`, WORDS)', 'message}`, 1e9)'],
  ]),
  ...weaken('src/mcp/message.ts', HONEST, [
    ['a tool that there is none of has a short name', 'name.length <= NAME', 'true'],
  ]),
  ...weaken('src/mcp/tools/findings.ts', TOOLS, [
    ['an empty kind is one', 'kind === undefined ? {} : { kind }', 'kind ? { kind } : {}'],
  ]),
  ...weaken('src/mcp/tools/records.ts', TOOLS, [
    [
      'an argument that nobody knows is refused',
      'z.strictObject({\n    family: z.enum(FAMILY',
      'z.object({\n    family: z.enum(FAMILY',
    ],
    ['a filter that would be dropped is refused', 'Object.hasOwn(given, PROTO)', 'false'],
  ]),
  ...weaken('src/mcp/tools/records.ts', HOSTILE, [
    ['payloads are left out', 'payload !== undefined && !payloads', 'false'],
  ]),
  ...weaken('src/mcp/tools/tool.ts', TOOLS, [
    ['an id does not lead to another route', `!['', '.', '..'].includes(value)`, `value !== ''`],
  ]),
  ...weaken('src/mcp/server.ts', HOSTILE, [
    [
      'a message of ours is not shown to an agent',
      `refused('500 internal: The request failed')`,
      'refused(String(error))',
    ],
    ['ids are read as they were shown', 'mapTexts(input, unshown)', 'mapTexts(input, String)'],
  ]),
  ...weaken('src/mcp/source.ts', DOOR, [
    [
      'a question ends within its time',
      'return await raceAbort(put(source, route, caller, signal), signal)',
      'return await put(source, route, caller, left)',
    ],
    ['so many questions are put at once', 'atOnce: 16', 'atOnce: 400'],
    ['so many questions wait', 'waiting: 256', 'waiting: 4_000'],
    ['so many callers are at the door', 'waiting: 4_096', 'waiting: 9_999', CROWD],
    ['who gave up gives his turn back', 'if (isMine) turns.release()', 'if (isMine) void 0'],
    ['a router elsewhere is not followed to', `redirect: 'manual'`, `redirect: 'follow'`],
    [
      'a router elsewhere hears the key alone',
      'for (const name of key === null ? [...CREDENTIALS, EXPECTED] : [EXPECTED]) {',
      'for (const name of caller.headers.keys()) {',
    ],
    ['a router elsewhere hears which one is expected', ' : [EXPECTED]', ' : []'],
    ['the router hears from where a caller comes', ', caller.info)', ')'],
    ['an answer without an end is left', 'const ANSWER_BYTES = 16_777_216', 'const ANSWER_BYTES = 67_108_864'],
    [
      'words from elsewhere are shown as text',
      'shownWithin(problemWords(response.status, body), WORDS)',
      'problemWords(response.status, body)',
    ],
    [
      'what was thrown is not told to an agent',
      `return problem('nobody answers there')`,
      'return problem(String(error))',
      HOSTILE,
    ],
  ]),
  ...weaken('src/mcp/mcp.ts', DOOR, [
    ['agents come by a name that is known', 'if (refusal !== undefined) throw new ProblemError(refusal)', ''],
    ['a page of another port is a foreign one', ', port: portOf(host) })', ' })'],
    ['a router that cannot be asked lets nobody in', `throw new ProblemError('inspector_unavailable')`, 'return true'],
    ['a token is a key behind the door, too', '{ headers: asKey.headers, info }', '{ headers, info }'],
    ['nobody is written down for who has a token', 'if (asKey && (await', 'if (false && (await'],
    ['another deployment is told as what it is', 'if (status === 412)', 'if (false)'],
    ['a crowd has turns of its own', 'await askAtDoor(', 'await askFor(', CROWD],
    ['a crowd fills no log', 'if (problem !== TOO_MANY) ', '', CROWD],
    ['a tool knows whose question it is', 'callers.set(message, who)', ''],
    ['a batch is no message', 'if (Array.isArray(parsedBody))', 'if (false)'],
    [
      'an agent without a name is refused',
      `(await deadline.race(auth.authenticate(request)))?.name === 'string'`,
      `(await deadline.race(auth.authenticate(request)))?.name !== 'number'`,
    ],
  ]),
  ...weaken('src/mcp/options.ts', DOOR, [
    ['a router of this machine is asked for nobody else', '!(allowedHosts ?? []).every(isOwnName)', 'false'],
    ['a key of the host is not everybody’s', 'if (key !== undefined && auth === undefined)', 'if (false)'],
    [
      'an auth that nobody has set opens nothing',
      `for (const name of ['key', 'auth'] as const)`,
      `for (const name of [] as ('key' | 'auth')[])`,
    ],
    [
      'only this machine may come unless it is said',
      'allowedHosts = [LOOPBACK_NAMES]',
      `allowedHosts = [LOOPBACK_NAMES, 'evil.example']`,
    ],
  ]),
  ...weaken('src/cli/text/table.ts', 'test/cli/table.test.ts', [
    ['a name of metadata is text', 'flat.set(visible(`${name}.${inner}`), part)', 'flat.set(`${name}.${inner}`, part)'],
    ['a name of a field is shown as text', 'else flat.set(visible(name), value)', 'else flat.set(name, value)'],
  ]),
  ...weaken('src/cli/mcp.ts', STDIO, [
    ['a conversation ends at what is too long', '{ maxBufferSize: MESSAGE_BYTES }', '{}'],
    ['who ends a conversation is heard', 'resolve(1)', ''],
    ['what was asked last is answered', 'within(answered(), LAST_ANSWERS_MS)', '0'],
    ['why nobody answers is said once', 'said.add(code)', ''],
    ['of an error its code alone is said', 'visible(cause.code)', 'String(error)'],
  ]),
  ...weaken('src/cli/reader/reader.ts', STDIO, [
    ['a key that no header carries is refused', '!/^[\\x20-\\x7e]+$/.test(key)', 'false'],
    [
      'a route can be put behind the address of a router',
      'if (/[?#]/.test(url.href)) throw',
      'if (url.search || url.hash) throw',
      'test/cli/get.test.ts',
    ],
    ['an address may end in slashes', `replace(/\\/+$/, '')`, `replace(/\\/$/, '')`],
  ]),
  ...weaken('src/cli/conversation.ts', STDIO, [
    ['a last line is one without its break', "stdin.once('end', handLast)", ''],
  ]),
  ...weaken('src/cli/arguments.ts', 'test/cli/observe.test.ts', [
    ['no part hides the routes', 'if (served[part] && parsePrefix(BESIDE[part]).covers(path))', 'if (false)'],
  ]),
  ...weaken('src/cli/get.ts', 'test/cli/get.test.ts', [
    ['a route is asked with all that it says', "if (route.includes('#')) throw", 'if (false) throw'],
    ['what was cut on any page is said', 'of cuts(pages,', 'of cuts(pages.slice(-1),'],
    ['records that were left out are said', 'if (left > 0)', 'if (false)'],
    ['a name of a source is text', '.map(cellOf)', '.map(String)'],
    ['a name of a field is text', "visible(left.join(', '))", "left.join(', ')"],
  ]),
  ...weaken('src/cli/top/state.ts', 'test/cli/top.test.ts', [
    ['a record that has gone is no other one', '{ ...open, isGone: true }', 'open'],
    ['a record is known by all of its id', '.id.map(', '.id.slice(-1).map('],
  ]),
  ...weaken('src/cli/top/header.ts', 'test/cli/top.test.ts', [
    ['a part that nobody confirms is of its time', 'if (at === null || !isLate(answer, now))', 'if (true)'],
    ['a number that nobody confirms is unknown', 'return problem === null ? value : null', 'return value'],
  ]),
]
