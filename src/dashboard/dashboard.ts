/** The handler of the dashboard: a shell without data, its two files, and what a browser lets the page do. */
import { checkOptions, invalidOption, needed, type Shape, TEXT } from '../contract/checks.js'
import { digest64 } from '../contract/digest.js'
import { createEngine, type Mountable, type Route, toHandler } from '../http/engine.js'
import { ProblemError } from '../http/problem.js'
import type { HttpReply } from '../http/respond.js'
import { parsePrefix } from '../http/target.js'

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
}

/** The dashboard: a fetch-style handler that never rejects, and what a mount needs to know of it. */
export interface Dashboard extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether a request with this path is the dashboard's to answer; an adapter passes on what is not. */
  owns(pathname: string): boolean
}

/* The page's script and style sheet, which the build puts in as texts: no file is read, in whatever runtime. */
declare const RELAYSCOPE_DASHBOARD_SCRIPT: string
declare const RELAYSCOPE_DASHBOARD_STYLE: string

/** One asset under a name that says what is in it, so that it may be kept for ever. */
interface Asset {
  readonly name: string
  readonly type: string
  readonly text: string
}

function asset(ending: string, type: string, text: string): Asset {
  return { name: `dashboard-${digest64(text)}.${ending}`, type: `${type}; charset=utf-8`, text }
}

const SCRIPT = asset('js', 'text/javascript', RELAYSCOPE_DASHBOARD_SCRIPT)
const STYLE = asset('css', 'text/css', RELAYSCOPE_DASHBOARD_STYLE)

/* The page without its data: where the router is, seen from here, and the two files that make the rest. */
const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string)

interface Shell {
  title: string
  /** Relative to the page, or of another origin. */
  api: string
  script: string
  style: string
}

/** Every URL in it is relative: a proxy may have put something in front of the path. */
const shellOf = ({ title, api, script, style }: Shell): string => `<!doctype html>
<html lang="en" data-api="${escaped(api)}">
<head>
<meta charset="utf-8">
<title>${escaped(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body>
<noscript>This page needs JavaScript. What it shows is also at the routes of the diagnostics router.</noscript>
</body>
</html>
`

const OPTIONS: Shape<DashboardOptions> = {
  api: needed({
    said: 'a string: the path or the URL of the diagnostics router',
    test: (value) => typeof value === 'string',
  }),
  prefix: TEXT,
  title: TEXT,
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
  const shell = shellOf({ title, api: from, script: SCRIPT.name, style: STYLE.name })

  function showShell({ url }: Request): HttpReply {
    // Without its slash the page would look for its files one step higher up.
    if (!new URL(url).pathname.endsWith('/'))
      return {
        status: 307,
        headers: { ...headers, location: `./${prefix.slice(prefix.lastIndexOf('/') + 1)}/` },
        body: '',
      }
    const cached = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' }
    return { status: 200, headers: { ...headers, ...cached }, body: shell }
  }

  const show = ({ type, text }: Asset) => {
    const cached = { 'content-type': type, 'cache-control': 'public, max-age=31536000, immutable' }
    return (): HttpReply => ({ status: 200, headers: { ...headers, ...cached }, body: text })
  }

  const engine = createEngine<Route<(request: Request) => HttpReply>, { request: Request }, null, HttpReply>({
    prefix,
    routes: [
      { path: '/', methods: { GET: showShell } },
      ...[SCRIPT, STYLE].map((asset) => ({ path: `/${asset.name}`, methods: { GET: show(asset) } })),
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
