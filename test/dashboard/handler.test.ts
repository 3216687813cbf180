import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createDashboard } from '../../src/dashboard/index.js'
import { ProblemCode } from '../../src/internal/http/problem.js'
import { FindingKind } from '../../src/internal/views/findings/finding.js'

const get = (dashboard: ReturnType<typeof createDashboard>, path: string, init?: RequestInit) =>
  dashboard(new Request(`http://localhost${path}`, init))

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; " +
  "trusted-types 'none'; frame-ancestors 'none'; base-uri 'none'"

/** The names of the two files that a shell asks for. */
async function filesOf(dashboard: ReturnType<typeof createDashboard>, path = '/dashboard/') {
  const shell = await (await get(dashboard, path)).text()
  const [, style] = /<link rel="stylesheet" href="([^"]+)">/.exec(shell) ?? []
  const [, script] = /<script type="module" src="([^"]+)">/.exec(shell) ?? []
  return { shell, style: style as string, script: script as string }
}

test('the shell holds no data, names its two files relatively, and says where the router is as seen from it', async () => {
  const dashboard = createDashboard({ api: '/ops/diagnostics', title: 'a <b> & "c"' })
  const response = await get(dashboard, '/dashboard/')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const { shell, style, script } = await filesOf(dashboard)
  expect(shell).toContain('data-api="../ops/diagnostics"')
  expect(shell).toContain('<title>a &lt;b&gt; &amp; &quot;c&quot;</title>')
  expect(style).toMatch(/^dashboard-[0-9a-f]{16}\.css$/)
  expect(script).toMatch(/^dashboard-[0-9a-f]{16}\.js$/)
  expect(shell).not.toMatch(/<style|style=|onload|<script>/)
})

test.each([
  ['/ops/diagnostics', '/dashboard', '../ops/diagnostics'],
  ['/ops/diagnostics/', '/ops/dashboard/', '../../ops/diagnostics'],
  ['/ops', '', './ops'],
  ['/ops:x', '', './ops:x'],
  ['', '/dashboard', '../'],
  ['', '', './'],
  ['https://relay.example:8443/ops', '/dashboard', 'https://relay.example:8443/ops'],
])('a router at %j is, for a dashboard at %j, at %j', async (api, prefix, seen) => {
  const { shell } = await filesOf(createDashboard({ api, prefix }), `${prefix.replace(/\/$/, '')}/`)
  expect(shell).toContain(`data-api="${seen}"`)
})

test('every answer, refusals aside, carries the policy; another origin may be connected to only where it was named', async () => {
  const dashboard = createDashboard({ api: '/ops' })
  const { style, script } = await filesOf(dashboard)
  for (const path of ['/dashboard', '/dashboard/', `/dashboard/${style}`, `/dashboard/${script}`]) {
    const { headers } = await get(dashboard, path)
    expect(headers.get('content-security-policy')).toBe(POLICY)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
  }
  const other = await get(createDashboard({ api: 'https://relay.example/ops' }), '/dashboard/')
  expect(other.headers.get('content-security-policy')).toBe(
    POLICY.replace("connect-src 'self'", "connect-src 'self' https://relay.example"),
  )
})

test('the files are immutable, because their names contain a hash', async () => {
  const dashboard = createDashboard({ api: '/ops' })
  const { style, script } = await filesOf(dashboard)
  for (const [name, type] of [
    [style, 'text/css; charset=utf-8'],
    [script, 'text/javascript; charset=utf-8'],
  ]) {
    const { status, headers } = await get(dashboard, `/dashboard/${name}`)
    expect([status, headers.get('content-type')]).toEqual([200, type])
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  }
  expect((await get(dashboard, '/dashboard/')).headers.get('cache-control')).toBe('no-cache')
})

test('shows the links of the host above the page, escaped, in another tab', async () => {
  const links = [
    { title: 'a <runbook>', href: '/run?a=1&b="2"' },
    { title: 'wiki', href: 'https://wiki.example/relay' },
  ]
  const { shell } = await filesOf(createDashboard({ api: '/ops', links }))
  expect(shell).toContain(
    '<nav class="links" aria-label="Links">' +
      '<a href="/run?a=1&amp;b=&quot;2&quot;" target="_blank" rel="noreferrer">a &lt;runbook&gt;</a> · ' +
      '<a href="https://wiki.example/relay" target="_blank" rel="noreferrer">wiki</a></nav>',
  )
  expect((await filesOf(createDashboard({ api: '/ops' }))).shell).not.toContain('<nav')
})

test('names the page of a trace in the shell, escaped, and connects to no other origin for it', async () => {
  const traceUrl = 'https://tracing.example:8443/search?q="{trace_id}"&from=<a>'
  const dashboard = createDashboard({ api: '/ops', traceUrl })
  const response = await get(dashboard, '/dashboard/')
  expect(response.headers.get('content-security-policy')).toBe(POLICY)
  expect(await response.text()).toContain(
    ' data-trace="https://tracing.example:8443/search?q=&quot;{trace_id}&quot;&amp;from=&lt;a&gt;"',
  )
  expect((await filesOf(createDashboard({ api: '/ops' }))).shell).not.toContain('data-trace')
})

test('names the page of a job in the shell', async () => {
  const shellOf = async (options: object) => (await filesOf(createDashboard({ api: '/ops', ...options }))).shell
  const jobUrl = 'https://board.example/queue/{queue}/{job_id}?"'
  expect(await shellOf({ jobUrl })).toContain(' data-job="https://board.example/queue/{queue}/{job_id}?&quot;"')
  expect(await shellOf({})).not.toContain('data-job')
  for (const jobUrl of ['https://board.example/{queue}', 'https://{queue}.example/{job_id}', '/{queue}/{job_id}', 7])
    await expect(shellOf({ jobUrl })).rejects.toThrow(
      /^Invalid option "jobUrl": expected an http\(s\) URL with \{queue\} and \{job_id\} after its host/,
    )
})

test('names the docs in the shell, relative to the page as a link is', async () => {
  const shellOf = async (docsUrl: string) => (await filesOf(createDashboard({ api: '/ops', docsUrl }))).shell
  expect(await shellOf('https://git.example/relayscope/docs/')).toContain(
    ' data-docs="https://git.example/relayscope/docs/{name}.md"',
  )
  expect(await shellOf('/docs/"/')).toContain(' data-docs="/docs/&quot;/{name}.md"')
  expect((await filesOf(createDashboard({ api: '/ops' }))).shell).toContain(' data-docs="docs/{name}"')
})

test('serves the pages of the docs that findings and problems name, each with its headings', async () => {
  const dashboard = createDashboard({ api: '/ops' })
  for (const [path, headings] of [
    ['/dashboard/docs/findings', FindingKind.options],
    ['/dashboard/docs/problems', ProblemCode.options],
  ] as const) {
    const response = await get(dashboard, path)
    expect(response.headers.get('content-security-policy')).toBe(POLICY)
    const text = await response.text()
    expect(text).toMatch(/href="\.\.\/dashboard-[0-9a-f]{16}\.css"/)
    expect(headings.filter((heading) => !text.includes(` id="${heading}"`))).toEqual([])
    expect(await (await get(dashboard, path, { method: 'HEAD' })).text()).toBe('')
  }
})

test.each([
  7,
  '',
  'https://git.example/docs',
  'https://git.example/docs/?ref=/',
  'https://git.example/docs/#/',
  'javascript:alert(1)/',
  `https://git.example/${'s3cret'.repeat(400)}/`,
])('the folder %j of docs is refused without its text', (docsUrl) => {
  const refused = () => createDashboard({ api: '/ops', docsUrl: docsUrl as string })
  expect(refused).toThrow(/^Invalid option "docsUrl": expected a path or an http\(s\) URL that ends with "\/"/)
  expect(refused).not.toThrow(/s3cret/)
})

test.each([
  7,
  '',
  'https://tracing.example/trace/',
  '/trace/{trace_id}',
  'javascript:alert("{trace_id}")',
  'ftp://tracing.example/{trace_id}',
  'https://{trace_id}.example/',
  'https://tracing.example:{trace_id}/',
  'https://s3cret@tracing.example/{trace_id}',
  'https://{trace_id}:s3cret@tracing.example/',
  `https://tracing.example/{trace_id}${'s3cret'.repeat(400)}`,
])('the template %j of traces is refused without its text', (traceUrl) => {
  const refused = () => createDashboard({ api: '/ops', traceUrl: traceUrl as string })
  expect(refused).toThrow(/^Invalid option "traceUrl": expected an http\(s\) URL with \{trace_id\} after its host/)
  expect(refused).not.toThrow(/s3cret/)
})

test('the files are compressed for clients that accept gzip, and plain for others', async () => {
  const dashboard = createDashboard({ api: '/ops' })
  const { style, script } = await filesOf(dashboard)
  for (const name of [style, script]) {
    const path = `/dashboard/${name}`
    const plain = await (await get(dashboard, path)).text()
    for (const accepted of ['gzip, deflate', 'br;q=0, gzip']) {
      const response = await get(dashboard, path, { headers: { 'accept-encoding': accepted } })
      expect([response.headers.get('content-encoding'), response.headers.get('vary')]).toEqual([
        'gzip',
        'accept-encoding',
      ])
      const bytes = Buffer.from(await response.arrayBuffer())
      expect(Number(response.headers.get('content-length'))).toBe(bytes.length)
      expect(gunzipSync(bytes).toString()).toBe(plain)
    }
    for (const accepted of ['identity', 'zstd', 'br;q=0', 'gzip;q=0.0']) {
      const response = await get(dashboard, path, { headers: { 'accept-encoding': accepted } })
      expect([response.headers.get('content-encoding'), await response.text()]).toEqual([null, plain])
    }
    const head = await get(dashboard, path, { method: 'HEAD', headers: { 'accept-encoding': 'gzip' } })
    expect([head.headers.get('content-encoding'), await head.text()]).toEqual(['gzip', ''])
  }
})

test('the files come as brotli once it is made, to clients that accept it, in fewer bytes than gzip', async () => {
  const dashboard = createDashboard({ api: '/ops' })
  const { style, script } = await filesOf(dashboard)
  const sizes = [0, 0]
  for (const name of [style, script]) {
    const path = `/dashboard/${name}`
    const asked = (accepted: string, method = 'GET') =>
      get(dashboard, path, { method, headers: { 'accept-encoding': accepted } })
    // Until then a browser gets gzip.
    expect(['gzip', 'br']).toContain((await asked('gzip, br')).headers.get('content-encoding'))
    await expect.poll(async () => (await asked('gzip, br')).headers.get('content-encoding')).toBe('br')
    const response = await asked('gzip, br')
    expect(response.headers.get('vary')).toBe('accept-encoding')
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(response.headers.get('content-length')).toBe(String(bytes.length))
    const gzip = Buffer.from(await (await asked('gzip')).arrayBuffer())
    expect(brotliDecompressSync(bytes).equals(gunzipSync(gzip))).toBe(true)
    for (const [i, { length }] of [bytes, gzip].entries()) sizes[i] = (sizes[i] as number) + length
    const head = await asked('br', 'HEAD')
    expect([head.headers.get('content-encoding'), await head.text()]).toEqual(['br', ''])
    expect((await asked('br;q=0, gzip')).headers.get('content-encoding')).toBe('gzip')
  }
  expect(sizes[0]).toBeLessThan(0.95 * (sizes[1] as number))
})

test.each([
  ['has no modules of Node', undefined],
  ['has none named zlib', () => undefined],
  ['has one that cannot compress', () => ({ brotliCompress: () => expect.fail('not implemented') })],
])('the files stay gzip where the runtime %s', async (name, getBuiltinModule) => {
  vi.stubGlobal('process', { ...process, getBuiltinModule })
  onTestFinished(() => void vi.unstubAllGlobals())
  // A module of its own: it makes brotli once.
  const module = `../../src/dashboard/dashboard.js?runtime=${encodeURIComponent(name)}`
  const { createDashboard } = (await import(module)) as typeof import('../../src/dashboard/dashboard.js')
  const dashboard = createDashboard({ api: '/ops' })
  const { script } = await filesOf(dashboard)
  for (let i = 0; i < 3; i++) {
    const response = await get(dashboard, `/dashboard/${script}`, { headers: { 'accept-encoding': 'gzip, br' } })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(gunzipSync(Buffer.from(await response.arrayBuffer())).length).toBeGreaterThan(10_000)
  }
})

test('the icons of the tab are files of its own, without data', async () => {
  const dashboard = createDashboard({ api: '/ops' })
  const { shell } = await filesOf(dashboard)
  const names = /data-icons="([^"]+)"/.exec(shell)?.[1]?.split(' ') ?? []
  expect(new Set(names).size).toBe(3)
  expect(shell).toContain(`<link rel="icon" type="image/svg+xml" href="${names[0]}">`)
  for (const name of names) {
    const response = await get(dashboard, `/dashboard/${name}`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/svg+xml; charset=utf-8'])
    expect(await response.text()).toMatch(/^<svg /)
  }
})

test.each([
  '/a/dashboard',
  '/a/dash:board',
])('%s without a slash at its end has the same URLs, behind a proxy that adds a path too', async (prefix) => {
  const links = ['docs/', '/docs/', 'https://docs.example/'].map((href) => ({ title: 'docs', href }))
  const dashboard = createDashboard({ api: '/ops', prefix, links })
  const [withSlash, without] = await Promise.all(
    [`${prefix}/`, prefix].map(async (path) => {
      const response = await get(dashboard, path)
      const urls = [...(await response.text()).matchAll(/(?:href|src|data-api|data-icons)="([^"]+)"/g)]
      const at = `https://relay.example/proxy${path}`
      return [
        response.status,
        ...urls.flatMap(([, value]) => value?.split(' ')).map((url) => new URL(url ?? '', at).href),
      ]
    }),
  )
  expect(withSlash?.[0]).toBe(200)
  expect(withSlash).toContain('https://relay.example/proxy/ops')
  expect(withSlash).toContain(`https://relay.example/proxy${prefix}/docs/`)
  expect(without).toEqual(withSlash)
})

test('it answers GET and HEAD of its files, and owns the paths below its prefix', async () => {
  const dashboard = createDashboard({ api: '/ops' })
  expect(dashboard.prefix).toBe('/dashboard')
  expect((await get(dashboard, '/dashboard/', { method: 'HEAD' })).status).toBe(200)
  expect((await get(dashboard, '/dashboard/', { method: 'POST' })).status).toBe(405)
  expect((await get(dashboard, '/dashboard/none')).status).toBe(404)
  expect(['/dashboard', '/dashboard/', '/dashboard/none'].map(dashboard.owns)).toEqual([true, true, true])
  expect(['/', '/dash', '/dashboards', '/ops'].map(dashboard.owns)).toEqual([false, false, false, false])
})

test.each([
  [{}, /^Missing required option "api"/],
  [{ api: 7 }, /^Invalid option "api": expected a string: .*, got 7/],
  [{ api: 'ops' }, /^Invalid option "api": expected an empty string or a path that starts with "\/", got "ops"/],
  [{ api: 'prefix' }, /^Invalid option "api": .*, got "prefix"/],
  [
    { api: 'https://relay.example//ops' },
    /^Invalid option "api": expected a path without empty or dot segments, got "\/\/ops"/,
  ],
  [{ api: 'ftp://relay.example/' }, /^Invalid option "api": expected a path, or an http\(s\) URL/],
  [{ api: 'https://key@relay.example/' }, /without credentials/],
  [{ api: 'https://relay.example/?key=1' }, /without credentials, query and fragment/],
  [{ api: '/ops', prefix: 'dashboard' }, /^Invalid option "prefix": .*, got "dashboard"/],
  [{ api: '/ops', title: 3 }, /^Invalid option "title": expected a string, got 3/],
  [{ api: '/ops', links: {} }, /^Invalid option "links": expected an array of at most 8/],
  [{ api: '/ops', links: [{ title: 'x' }] }, /^Invalid option "links"/],
  [{ api: '/ops', links: [{ title: 'x', href: 'javascript:alert(1)' }] }, /^Invalid option "links"/],
  [{ api: '/ops', titel: 'x' }, /^Unknown option "titel"\. Did you mean "title"\?$/],
])('%j is refused by name', (options, reason) => {
  expect(() => createDashboard(options as never)).toThrow(reason)
})
