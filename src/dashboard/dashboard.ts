/** The handler of the dashboard: a shell without data, its two files, and what a browser lets the page do. */
import { checkOptions, invalidOption, required, type Shape, TEXT } from '../internal/contract/checks.js'
import { digest64 } from '../internal/contract/digest.js'
import { createEngine, type Mountable, type Route, toHandler } from '../internal/http/engine.js'
import { ProblemError } from '../internal/http/problem.js'
import type { HttpReply } from '../internal/http/respond.js'
import { parsePrefix } from '../internal/http/target.js'

/** Options of `createDashboard`. */
export interface DashboardOptions {
  /**
   * Where the diagnostics router is: its whole public path, or a URL of another origin, whose host then allows this one by CORS
   * (`X-Admin-Key` and `If-None-Match` among the headers, `ETag` exposed).
   */
  api: string
  /** The whole public path under which this process sees the dashboard. @default '/dashboard' */
  prefix?: string | undefined
  /** What the page is called until the router has named its deployment. @default 'relayscope' */
  title?: string | undefined
  /** Links below the page, for example to a runbook: at most 8. `href` is a path or an http(s) URL. They open in another tab. */
  links?: readonly DashboardLink[] | undefined
  /**
   * The page of a trace in your tracing: an http(s) URL with `{trace_id}` after its host, at most 2048 characters. Trace ids
   * link to it, in another tab. @default none, trace ids are text
   */
  traceUrl?: string | undefined
  /**
   * The page of a BullMQ job in bull-board or another tool: an http(s) URL with `{queue}` and `{job_id}` after its host, at
   * most 2048 characters. The page of a command whose id is one of `relayscope/bullmq` links to it, in another tab.
   * @default none
   */
  jobUrl?: string | undefined
  /**
   * Where the `docs` folder of the package can be read, for example in your repository: a path or an http(s) URL that ends
   * with a slash. Findings and problems link to their heading below it, in another tab.
   * @default the two pages that they name are served below `prefix`, under `docs`
   */
  docsUrl?: string | undefined
}

/** A link below the dashboard. */
export interface DashboardLink {
  /** Text of the link. */
  title: string
  /** A path or an http(s) URL. */
  href: string
}

/** The dashboard: a fetch-style handler that never rejects, and what a mount needs to know of it. */
export interface Dashboard extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether a request with this path is the dashboard's to answer; an adapter passes on what is not. */
  owns(pathname: string): boolean
}

/*
 * The page's script and style sheet, and the HTML of two pages of the docs, which the build inserts as gzip in base64: no
 * file is read at run time, and the package contains each of them once.
 */
declare const RELAYSCOPE_DASHBOARD_SCRIPT: string
declare const RELAYSCOPE_DASHBOARD_STYLE: string
declare const RELAYSCOPE_DASHBOARD_FINDINGS: string
declare const RELAYSCOPE_DASHBOARD_PROBLEMS: string

type Bytes = Uint8Array<ArrayBuffer>

/** One asset under a name with the digest of its content, so that it can be cached forever. */
interface Asset {
  readonly name: string
  readonly type: string
  readonly bytes: Bytes
  /** Its content as brotli, of which `bytes` is gzip; `null` for as long as there is none. */
  readonly brotli?: () => Bytes | null
}

const asset = (ending: string, type: string, content: string, bytes: Bytes): Asset => ({
  name: `dashboard-${digest64(content)}.${ending}`,
  type: `${type}; charset=utf-8`,
  bytes,
})

async function decompress(gzip: Bytes): Promise<Bytes> {
  const plain = new Response(new Blob([gzip]).stream().pipeThrough(new DecompressionStream('gzip')))
  return new Uint8Array(await plain.arrayBuffer())
}

/**
 * Makes brotli from gzip: less on the wire, for 0.1 s of another thread once a process. In the package both would take
 * twice the room. Runtimes without `node:zlib` keep to gzip.
 */
function createBrotli(gzip: Bytes): () => Bytes | null {
  let brotli: Bytes | null = null
  let isStarted = false
  async function compress(): Promise<void> {
    const zlib = globalThis.process?.getBuiltinModule?.('node:zlib')
    zlib?.brotliCompress(await decompress(gzip), (error, result) => {
      if (!error) brotli = new Uint8Array(result)
    })
  }
  return () => {
    // A runtime may have the module and not this function of it.
    if (!isStarted) compress().catch(() => {})
    isStarted = true
    return brotli
  }
}

const decoded = (base64: string): Bytes => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))

function compressed(ending: string, type: string, base64: string): Asset {
  const bytes = decoded(base64)
  return { ...asset(ending, type, base64, bytes), brotli: createBrotli(bytes) }
}

const SCRIPT = compressed('js', 'text/javascript', RELAYSCOPE_DASHBOARD_SCRIPT)
const STYLE = compressed('css', 'text/css', RELAYSCOPE_DASHBOARD_STYLE)

/** Pages of the docs, by name. */
const DOCS: Readonly<Record<string, string>> = {
  findings: RELAYSCOPE_DASHBOARD_FINDINGS,
  problems: RELAYSCOPE_DASHBOARD_PROBLEMS,
}

async function documentOf(name: string, style: string): Promise<Bytes> {
  const body = new TextDecoder().decode(await decompress(decoded(DOCS[name] as string)))
  return new TextEncoder().encode(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>relayscope: ${name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`)
}

/** The icon of the tab: a colour and a shape for each state of the page. */
function icon(shape: string): Asset {
  const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${shape}</svg>`
  return asset('svg', 'image/svg+xml', text, new TextEncoder().encode(text))
}
const ICONS = {
  unknown: icon('<circle cx="8" cy="8" r="6" fill="none" stroke="#8b9098" stroke-width="3"/>'),
  ok: icon('<circle cx="8" cy="8" r="7" fill="#17a05a"/>'),
  bad: icon('<path d="M8 1l7.5 14H.5z" fill="#d93025"/>'),
}

/** Whether an `Accept-Encoding` header names `encoding` and does not rule it out. */
const accepts = (header: string, encoding: string) =>
  header.split(',').some((item) => {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })

async function* chunksOf(bytes: Bytes | Promise<Bytes>): AsyncGenerator<Bytes, undefined> {
  yield await bytes
  return undefined
}

/** A representation of an asset: the smallest that the client accepts and that there is. */
function encodingOf({ bytes, brotli }: Asset, accepted: string): [encoding: string | null, bytes: Bytes | null] {
  if (!brotli) return [null, bytes]
  const smallest = accepts(accepted, 'br') ? brotli() : null
  if (smallest) return ['br', smallest]
  return accepts(accepted, 'gzip') ? ['gzip', bytes] : [null, null]
}

/* The page without its data: where the router is, seen from here, and the two files that make the rest. */
const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string)

interface Shell {
  title: string
  /** Relative to the page, or of another origin. */
  api: string
  script: string
  style: string
  /** The icons of unknown, ok and bad, for the page to choose from. */
  icons: string
  /** The icon until then. */
  icon: string
  links: readonly DashboardLink[]
  traceUrl: string | undefined
  jobUrl: string | undefined
  /** With `{name}` for the name of a page. */
  docsUrl: string
}

/** Every URL in it is relative: a proxy may have put something in front of the path. */
const linksOf = (links: readonly DashboardLink[]): string =>
  links.length === 0
    ? ''
    : `<nav class="links" aria-label="Links">${links
        .map(({ title, href }) => `<a href="${escaped(href)}" target="_blank" rel="noreferrer">${escaped(title)}</a>`)
        .join(' · ')}</nav>\n`

const dataOf = (name: string, url: string | undefined) => (url === undefined ? '' : ` data-${name}="${escaped(url)}"`)

const shellOf = ({
  title,
  api,
  script,
  style,
  icons,
  icon,
  links,
  traceUrl,
  jobUrl,
  docsUrl,
}: Shell): string => `<!doctype html>
<html lang="en" data-api="${escaped(api)}" data-icons="${icons}"${dataOf('trace', traceUrl)}${dataOf('job', jobUrl)}${dataOf('docs', docsUrl)}>
<head>
<meta charset="utf-8">
<title>${escaped(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" type="image/svg+xml" href="${icon}">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body>
<div>
<noscript>This page needs JavaScript. What it shows is also at the routes of the diagnostics router.</noscript>
</div>
${linksOf(links)}</body>
</html>
`

const LINKS_MAX = 8

function isLink(value: unknown): boolean {
  const { title, href } = Object(value) as Partial<Record<string, unknown>>
  if (typeof title !== 'string' || title === '' || typeof href !== 'string') return false
  return URL.canParse(href, 'http://localhost') && /^https?:$/.test(new URL(href, 'http://localhost').protocol)
}

/** Whether it is a path or an http(s) URL to which the name of a file can be appended. */
const isFolder = (value: unknown) =>
  typeof value === 'string' &&
  value.length <= URL_LENGTH &&
  /^[^?#]*\/$/.test(value) &&
  isLink({ title: 'docs', href: value })

const URL_LENGTH = 2_048

/** Whether the template is an http(s) URL with each of `names`, and an id in their place changes neither the host nor the credentials. */
function isTemplate(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'string' || value.length > URL_LENGTH) return false
  if (!names.every((name) => value.includes(name))) return false
  const [one, other] = ['0', '1'].map((id) => {
    const url = names.reduce((text, name) => text.replaceAll(name, id), value)
    return URL.canParse(url) ? new URL(url) : undefined
  })
  return (
    one !== undefined &&
    /^https?:$/.test(one.protocol) &&
    one.origin === other?.origin &&
    `${one.username}${one.password}` === ''
  )
}

export const isTraceUrl = (value: unknown): boolean => isTemplate(value, ['{trace_id}'])

const OPTIONS: Shape<DashboardOptions> = {
  api: required({
    expected: 'a string: the path or the URL of the diagnostics router',
    test: (value) => typeof value === 'string',
  }),
  prefix: TEXT,
  title: TEXT,
  links: {
    expected: `an array of at most ${LINKS_MAX} { title, href }, href being a path or an http(s) URL`,
    test: (value) => Array.isArray(value) && value.length <= LINKS_MAX && value.every(isLink),
  },
  traceUrl: {
    expected: `an http(s) URL with {trace_id} after its host, of at most ${URL_LENGTH} characters and without credentials`,
    test: isTraceUrl,
    isPrivate: true,
  },
  jobUrl: {
    expected: `an http(s) URL with {queue} and {job_id} after its host, of at most ${URL_LENGTH} characters and without credentials`,
    test: (value) => isTemplate(value, ['{queue}', '{job_id}']),
    isPrivate: true,
  },
  docsUrl: {
    expected: `a path or an http(s) URL that ends with "/", of at most ${URL_LENGTH} characters, without query and fragment`,
    test: isFolder,
    isPrivate: true,
  },
}

const pathOf = (api: string) => parsePrefix(api, 'api').path

/** Where the router is: `from` the page's own path, and the origin to connect to where that is another one. */
function locate(api: string, prefix: string): { from: string; origin: string | null } {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(api)) {
    // The page lies below its prefix. Upwards and down again, whatever a proxy has put in front of both. Without a dot in front
    // a path that begins with a colon in its first segment would be read as a URL of some scheme.
    const up = '../'.repeat(prefix.split('/').length - 1) || './'
    return { from: up + pathOf(api).slice(1), origin: null }
  }
  const url = URL.canParse(api) ? new URL(api) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new TypeError(invalidOption('api', 'a path, or an http(s) URL without credentials, query and fragment'))
  return { from: url.origin + pathOf(url.pathname), origin: url.origin }
}

const policyOf = (origin: string | null) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self'${origin === null ? '' : ` ${origin}`}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')

/**
 * Builds the handler of a page that shows what a diagnostics router answers. It holds no data and needs no key: the page asks
 * for one, keeps it in memory and sends it to the router alone.
 *
 * @throws TypeError that names an unusable option.
 * @example
 * const dashboard = createDashboard({ api: '/ops/diagnostics', prefix: '/dashboard' })
 * await dashboard(new Request('http://localhost/dashboard/'))
 */
export function createDashboard(options: DashboardOptions): Dashboard {
  checkOptions(options, OPTIONS)
  const { api, title = 'relayscope' } = options
  const prefix = parsePrefix(options.prefix ?? '/dashboard').path
  const { from, origin } = locate(api, prefix)
  const headers = {
    'content-security-policy': policyOf(origin),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  }
  /** The page, with its URLs relative to where it is. `down` leads to the files, which are below the path with a slash at its end. */
  const shellAt = (down: string): string => {
    const below = (href: string) => (/^(?:\/|[a-z][a-z0-9+.-]*:)/i.test(href) ? href : down + href)
    return shellOf({
      title,
      api: below(from),
      script: below(SCRIPT.name),
      style: below(STYLE.name),
      icons: [ICONS.unknown, ICONS.ok, ICONS.bad].map(({ name }) => below(name)).join(' '),
      icon: below(ICONS.unknown.name),
      links: (options.links ?? []).map((link) => ({ ...link, href: below(link.href) })),
      traceUrl: options.traceUrl,
      jobUrl: options.jobUrl,
      docsUrl: below(options.docsUrl === undefined ? 'docs/{name}' : `${options.docsUrl}{name}.md`),
    })
  }
  const shell = shellAt('')
  // No redirect to the slash: some frameworks remove it again, and others rewrite relative redirects.
  const shellWithoutSlash = shellAt(`./${prefix.slice(prefix.lastIndexOf('/') + 1)}/`)

  function showShell({ url }: Request): HttpReply {
    const body = new URL(url).pathname.endsWith('/') ? shell : shellWithoutSlash
    const cached = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' }
    return { status: 200, headers: { ...headers, ...cached }, body }
  }

  const showDocument =
    (name: string) =>
    (request: Request): HttpReply => ({
      status: 200,
      headers: { ...headers, 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' },
      body: request.method === 'HEAD' ? null : chunksOf(documentOf(name, `../${STYLE.name}`)),
    })

  const show = (asset: Asset) => {
    const cached = {
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      ...(asset.brotli && { vary: 'accept-encoding' }),
    }
    return (request: Request): HttpReply => {
      const [encoding, bytes] = encodingOf(asset, request.headers.get('accept-encoding') ?? '')
      return {
        status: 200,
        headers: {
          ...headers,
          ...cached,
          ...(encoding !== null && { 'content-encoding': encoding }),
          ...(bytes && { 'content-length': String(bytes.byteLength) }),
        },
        body: request.method === 'HEAD' ? null : chunksOf(bytes ?? decompress(asset.bytes)),
      }
    }
  }

  const engine = createEngine<Route<(request: Request) => HttpReply>, { request: Request }, null, HttpReply>({
    prefix,
    routes: [
      { path: '/', methods: { GET: showShell } },
      ...Object.keys(DOCS).map((name) => ({ path: `/docs/${name}`, methods: { GET: showDocument(name) } })),
      ...[SCRIPT, STYLE, ...Object.values(ICONS)].map((asset) => ({
        path: `/${asset.name}`,
        methods: { GET: show(asset) },
      })),
    ],
    // There is nothing to see in it.
    authenticate: () => null,
    checkParam: () => undefined,
    answer: (handle, _, { request }) => handle(request),
    refuse: (error) => (error instanceof ProblemError ? error : new ProblemError('internal')),
  })

  const handler = toHandler((request) => engine.reply({ request }))
  return Object.assign(handler, { prefix: engine.prefix, owns: engine.owns })
}
