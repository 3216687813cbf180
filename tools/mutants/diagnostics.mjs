/** The diagnostics router, the words of the contract that every family shares, and the views. */
import { weaken } from './mutant.mjs'

export const DIAGNOSTICS = [
  ...weaken('src/diagnostics/hooks.ts', 'test/diagnostics/hooks.test.ts', [
    ['what a host calls a request is an id', 'return checkId(id) === undefined ? id : null', 'return id'],
    ['a host that names a request too late ends no process', 'Promise.resolve(id).catch(failed)', ''],
  ]),
  ...weaken('src/diagnostics/router.ts', 'test/diagnostics/authentication.test.ts', [
    [
      'an authenticator that names nobody lets nobody in',
      `if (principal && typeof name === 'string') {`,
      'if (principal) {',
    ],
    [
      'an authenticator has until the deadline',
      'await visit.deadline.race(auth.authenticate(visit.request))',
      'await auth.authenticate(visit.request)',
    ],
    [
      'a parameter of a path is an id',
      'checkParam: checkId',
      'checkParam: () => undefined',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'another deployment than the expected one answers nothing',
      'expected !== null && expected !== deployment.id',
      'false',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'requests that authentication refuses are told',
      'if (principal === null && given.status !== 403) return given',
      'if (principal === null) return given',
      'test/diagnostics/hooks.test.ts',
    ],
  ]),
  ...weaken('src/diagnostics/question.ts', 'test/diagnostics', [
    [
      'an inspector cannot lift the bounds of others',
      'Object.freeze({ examined: limits.examined })',
      '{ examined: limits.examined }',
    ],
  ]),
  ...weaken('src/diagnostics/watch/watches.ts', 'test/diagnostics/watch.test.ts', [
    ['watches of one principal are bounded', 'own >= WATCHES_PER_PRINCIPAL', 'own < 0'],
    ['watches that begin at once are bounded together', 'beginning.push(principal.name)', 'beginning.slice()'],
    [
      'whoever has left before a watch begins has none',
      "        if (request.signal.aborted) throw new ProblemError('inspector_timeout')\n",
      '',
    ],
    ['what could not be read is read for nobody', 'for (const reader of shared) reader.leaveIdle()', ''],
    ['a watcher who is nobody any more is sent away', 'const now = await whoNow()', 'const now = principal'],
    [
      'a watcher who is somebody else now is sent away',
      "if (now.name !== principal.name) return { reason: 'forbidden', retry: null }",
      '',
      'test/diagnostics/watch-trust.test.ts',
    ],
    [
      'a watcher may see what the principal of now may',
      '{ principal: now, request }',
      '{ principal, request }',
      'test/diagnostics/watch-trust.test.ts',
    ],
    [
      'a watcher who may see others now begins anew',
      "return isSame ? null : { reason: 'scope_changed', retry: 0 }",
      'return null',
    ],
    ['who sees some users shares no reader with who sees others', 'JSON.stringify([name, scope])', 'name'],
  ]),
  ...weaken('src/diagnostics/watch/reader.ts', 'test/diagnostics/watch.test.ts', [
    ['a version that is another is read', "typeof version === 'string' && version === this.#sourceVersion", 'version'],
  ]),
  ...weaken('src/diagnostics/watch/reader.ts', 'test/diagnostics/watch-trust.test.ts', [
    ['what nobody could read is no snapshot', '!this.#reading || this.#hasFailed', '!this.#reading'],
    ['a reading without a part has no version', 'isWhole ? version : null', 'version'],
  ]),
  ...weaken('src/diagnostics/watch/view.ts', 'test/diagnostics/watch-trust.test.ts', [
    ['a reading of which a host was told has no version', '!hasFailed && isWhole(answer)', 'isWhole(answer)'],
    ['a reading that says that it is a part has no version', '!hasFailed && isWhole(answer)', '!hasFailed'],
    ['a view that nobody may open leaves no timer', 'opening.clear()', ''],
  ]),
  ...weaken('src/diagnostics/watch/begin.ts', 'test/diagnostics/watch-trust.test.ts', [
    ['to ask who watches leaves nothing on the request', 'deadline.clear()', ''],
    ['what was watched is told', 'visit.filters = { view }', '', 'test/diagnostics/hooks.test.ts'],
    [
      'what a host is told of a watch changes none of it',
      'filters: { ...filters }',
      'filters',
      'test/diagnostics/hooks.test.ts',
    ],
  ]),
  ...weaken('src/diagnostics/watch/feed.ts', 'test/diagnostics/watch-trust.test.ts', [
    ['whoever may not look any more holds no place', 'data: why }))\n      leave()', 'data: why }))\n      wake()'],
    [
      'whoever may not look any more is sent nothing that waited',
      'if (!isOver) return',
      'if (pending.size > 0) return',
    ],
  ]),
  ...weaken('src/diagnostics/router.ts', 'test/diagnostics/tags.test.ts', [
    ['an answer of which a host was told has no version', '!visit.isPartial && isWhole', 'isWhole'],
    [
      'an answer that says that it is a part has no version',
      '!visit.isPartial && isWhole(visit.answer)',
      '!visit.isPartial',
    ],
    [
      'what nobody has read is not there for *',
      'isNamed(named, known)',
      '(isNamed(named, known) || isAnyNamed(named))',
    ],
    [
      'errors of requests of nobody are bounded',
      'if (principal === undefined) hooks.errorOfNobody(error)\n    else hooks',
      'hooks',
      'test/diagnostics/hooks.test.ts',
    ],
  ]),
  ...weaken('src/http/etag.ts', 'test/diagnostics/tags.test.ts', [
    ['a list that was cut is not whole', 'complete !== false && ', ''],
    ['a list without a record is not whole', "!encoded.members.some(({ name }) => name === 'omitted')", 'true'],
  ]),
  ...weaken('src/diagnostics/history.ts', 'test/diagnostics/tags.test.ts', [
    ['a payload goes without a word', '    unversioned: true,\n', ''],
  ]),
  ...weaken('src/diagnostics/watch/rows.ts', 'test/diagnostics/watch.test.ts', [
    ['a row that is another is sent', 'if (was?.compared !== row.compared)', 'if (!was)'],
    ['an age is no change of a row', 'compared: comparedRecord(text, of)', 'compared: text'],
    [
      'rows of commands of nobody are told apart',
      "'command_id', 'admission']",
      "'command_id']",
      'test/diagnostics/watch-rows.test.ts',
    ],
  ]),
  ...weaken('src/diagnostics/tags.ts', 'test/diagnostics/unheard.test.ts', [
    [
      'a version that throws leaves no other one unheard',
      '(source) => versionOf(source, ask)',
      '(source) => source.version?.(ask)',
    ],
  ]),
  ...weaken('src/diagnostics/sources.ts', 'test/diagnostics/unheard.test.ts', [
    ['a ping that throws leaves no list unheard', 'pinged()])', 'ping?.call(inspector, ask)])'],
  ]),
  ...weaken('src/diagnostics/delivery.ts', 'test/diagnostics/tenants.test.ts', [
    ['a record that is none hides no scope', 'tenant?.scope_id === scope_id', 'tenant.scope_id === scope_id'],
  ]),
  ...weaken('src/diagnostics/tags.ts', 'test/diagnostics/tags.test.ts', [
    ['no request waits for the version of a store', '(isWatched || !remoteVersion)', 'true'],
  ]),
  ...weaken('src/diagnostics/question.ts', 'test/diagnostics/tags.test.ts', [
    ['what changes by itself has no version', 'asked.route.unversioned ? null : versionWithin', 'versionWithin'],
  ]),
  ...weaken('src/diagnostics/sites.ts', 'test/memory/versions.test.ts', [
    ['sites are others when their sessions are', "alsoReads: ['sessions'],", ''],
  ]),
  ...weaken('src/diagnostics/watch/feed.ts', 'test/diagnostics/watch.test.ts', [
    ['nothing is queued for a slow watcher', "pending.set(reader, { kind: 'reset' })", 'pending.size'],
  ]),
  ...weaken('src/browser/watch.ts', 'test/browser/watch.test.ts', [
    ['a page in place of a stream ends a watch', '!/^(4(08|29)|5(?!01))/', '/^(4(?!08|29)|501)/'],
    ['a list that nobody looks at is stale by itself', 'hear(state, () => lose([state]))', ''],
    ['a list is silent since it was heard of last', 'clearTimeout(silences.get(of))', ''],
    ['a watch that was left tells of no silence', 'for (const timer of silences.values()) clearTimeout(timer)', ''],
    [
      'a watch waits for no headers that never come',
      "await raceAbort(typeof headers === 'function' ? headers() : headers, connection.signal)",
      "typeof headers === 'function' ? await headers() : headers",
    ],
    ['a watch in which nobody is heard of comes back', 'const end = () => connection.abort()', 'const end = () => {}'],
  ]),
  ...weaken('src/views/findings/list.ts', 'test/diagnostics/findings.test.ts', [
    ['what is seen once is no finding', 'seen.findings.filter(({ finding_id }) => known.has(finding_id))', 'findings'],
    ['the second look has a part of the bounds', 'view, FIRST_SHARE)', 'view, 1)'],
  ]),
  ...weaken('src/views/findings/detector.ts', 'test/diagnostics/findings-pages.test.ts', [
    [
      'what is not on an empty page is not away',
      'if (page.next === null || page.records.some(meant)) return',
      'return',
    ],
  ]),
  ...weaken('src/views/clients.ts', 'test/diagnostics/findings-pages.test.ts', [
    ['a client that is not on an empty page is not away', 'if (held || !page.has_more) return', 'return'],
    ['a client of which nobody knows within the bounds is not away', '  }\n  throw outOf()', '  }\n  return null'],
    ['empty pages of a client are bounded', 'if (budget.pages <= 0) break', ''],
  ]),
  ...weaken('src/diagnostics/hooks.ts', 'test/diagnostics/hooks.test.ts', [
    [
      'requests of nobody fill no log',
      'if (record.principal === null && !admitsRecord()) return void suppressed++',
      '',
    ],
    ['errors of nobody fill no log', 'if (admitsError()) error', 'error'],
    ['the requests of nobody that were not told are counted', 'return void suppressed++', 'return'],
  ]),
  ...weaken('src/contract/ids.ts', 'test/diagnostics/paths.test.ts', [
    ['an id holds no format characters', String.raw`\p{Cc}\p{Cf}`, String.raw`\p{Cc}`, 'test/contract/ids.test.ts'],
    ['an id holds no control characters', String.raw`\p{Cc}\p{Cf}`, String.raw`\p{Cf}`, 'test/contract/ids.test.ts'],
    [
      'an id is bounded in bytes',
      'if (utf8Length(value) > ID_BYTES)',
      'if (value.length > ID_BYTES)',
      'test/contract/ids.test.ts',
    ],
    [
      'a reason is a name of low cardinality',
      `REASON.test(value) ? value : 'other'\n}`,
      'value\n}',
      'test/contract/ids.test.ts',
    ],
  ]),
  ...weaken('src/contract/page.ts', 'test/contract/page.test.ts', [
    ['a token of a sequence is one that was handed out', '!SEQUENCE.test(cursor) ||', ''],
  ]),
  ...weaken('src/contract/limits.ts', 'test/diagnostics/service.test.ts', [
    ['a host only lowers limits', 'value, ceiling)', 'value)'],
    [
      'a limit that is misspelt is refused as other options are',
      "checkOptions(given, boundsIn(CEILING), 'limits.')",
      '',
      'test/house/options.test.ts',
    ],
  ]),
  ...weaken('src/contract/json.ts', 'test/memory/connections.test.ts', [
    ['metadata does not turn into something else', "typeof toJSON !== 'function'", 'true'],
  ]),
  ...weaken('src/contract/input.ts', 'test/memory/connections.test.ts', [
    ['a name that is no text is refused as any other', 'path.map(String).join', 'path.join'],
  ]),
  ...weaken('src/contract/json.ts', 'test/contract/json.test.ts', [
    ['what is no JSON stays as it is', '!isPlain(one) || ', '', 'test/cooperative-site/handlers.test.ts'],
    [
      'what a host says of a node has its bound on the way out too',
      'return toJson(value, METADATA_BYTES).bytes > 0',
      'return true',
      'test/diagnostics/foreign-nodes.test.ts',
    ],
    ['a payload nests so deep', 'if (count === undefined) throw new Refusal', 'if (false) throw new Refusal'],
    ['what cannot fit is not even written', 'if (2 * count > maxBytes) throw', 'if (false) throw'],
    ['a payload has so many bytes', 'if (bytes > maxBytes) throw', 'if (false) throw'],
  ]),
  ...weaken('src/views/users.ts', 'test/views/users.test.ts', [
    [
      'users of a source come in their order',
      "if (typeof id !== 'string' || (last !== null && compareIds(id, last) <= 0))",
      "if (typeof id !== 'string')",
      'test/views',
    ],
  ]),
  ...weaken(
    'src/views/reading.ts',
    ['test/views'],
    [
      ['a walk that goes round ends', 'if (seen.has(cursor)) break', ''],
      ['a page of a walk holds no more than its limit', 'if (length > limit) throw', 'if (false) throw'],
      ['a page of a walk that goes on says where', `page.has_more && typeof page.next_cursor !== 'string'`, 'false'],
      [
        'a reading that left a record out is not whole',
        ' || records.length < page.items.length',
        '',
        'test/diagnostics/bad-records.test.ts',
      ],
    ],
  ),
  ...weaken('src/contract/bad-record.ts', 'test/diagnostics/bad-records.test.ts', [
    [
      'what is told of a record names no text of somebody',
      "NAME.test(String(part)) ? String(part) : '…'",
      'String(part)',
    ],
  ]),
  ...weaken('src/diagnostics/router.ts', 'test/diagnostics/bad-records.test.ts', [
    ['a host is told of so many records', 'if (fault && ++visit.leftOut > RECORDS_TOLD) return', ''],
  ]),
]
