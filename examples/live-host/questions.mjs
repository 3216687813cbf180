/** The page `/questions`: a tour of five steps, requests to paste, and ways to break the demo. */
import { readFile } from 'node:fs/promises'
import { findLiving } from './living.mjs'
import { json } from './wire/http.mjs'

/** Every request that the router answers, with ids of records that exist now. */
function requestsFor({ connection, context, command, correlation_id, ended, message }, notes) {
  const { user_id, client_id, instance_id, connection_id } = connection
  const { context_id, task_id } = context
  const query = (fields) => new URLSearchParams(fields)
  const at = encodeURIComponent
  return [
    '/',
    '/openapi.json',
    '/capabilities',
    '/sources',
    '/findings',
    '/findings/summary',
    `/search?${query({ q: user_id })}`,
    '/users',
    `/users/${at(user_id)}/summary`,
    '/actions',
    `/connections?${query({ user_id })}`,
    '/connections/count',
    '/connections/churn',
    `/connections/events?${query({ limit: 5 })}`,
    `/connections/${at(connection_id)}`,
    `/connections/${at(connection_id)}/history`,
    '/history/streams',
    `/history/messages?${query({ stream: message.stream, limit: 5 })}`,
    '/rpc/summary',
    '/rpc/pending',
    `/rpc/pending/${at(correlation_id)}`,
    `/rpc/ended?${query({ limit: 5 })}`,
    `/rpc/ended/${at(ended)}`,
    `/rpc/instances/${at(instance_id)}?${query({ user_id, client_id })}`,
    '/deduplicator/summary',
    `/deduplicator/users/${at(user_id)}`,
    `/contexts?${query({ ownership: 'worker' })}`,
    '/contexts/count',
    `/contexts/${at(context_id)}`,
    `/workers?${query({ user_id })}`,
    `/workers/count?${query({ user_id })}`,
    `/workers/available?${query({ user_id })}`,
    `/workers/tasks/${at(task_id)}?${query({ user_id })}`,
    '/browser-windows',
    '/browser-windows/count',
    '/delivery/summary',
    '/delivery/nodes',
    '/delivery/tenants',
    '/delivery/commands',
    '/delivery/mailboxes',
    '/delivery/churn',
    `/delivery/why?${query(command)}`,
    `/delivery/status?${query(command)}`,
    '/sites',
    `/sites/${at(notes.site_id)}`,
    '/sessions',
    `/sessions/${at(notes.session_id)}`,
    '/subscriptions?order=slowest',
  ]
}

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escaped = (text) => text.replace(/[&<>"']/g, (character) => ENTITIES[character])

/** The five steps: what to do, the command for it, and where to look in the dashboard. */
function tourOf({ clients, url }) {
  const { user_id, client_id, pid } = clients.at(-1)
  return [
    {
      title: 'See who is there',
      text: `Four processes are connected: three consoles that count words, and an application that keeps notes. The
overview has no finding: nothing contradicts anything else.`,
      look: 'Overview, Connections',
    },
    {
      title: 'Follow one command',
      text: `Open a command. It was admitted, attempted, acknowledged and ended, each with what it proves. console-2 does
not acknowledge every other first attempt: its commands have two.`,
      look: 'Commands, then one of console-2',
    },
    {
      title: 'Stop a client',
      text: `The process of ${client_id} hangs. Its next commands are attempted and not acknowledged. After 7 s its
connection is disconnected (heartbeat_lost), and the findings say which records contradict that.`,
      command: `kill -STOP ${pid}`,
      look: 'Overview, Findings, then Connections',
    },
    {
      title: 'Let it continue',
      text: `It connects as a new instance, and the old one is fenced: it can no longer acknowledge anything. The findings
disappear.`,
      command: `kill -CONT ${pid}`,
      look: `Users, then ${user_id}`,
    },
    {
      title: 'Join',
      text: `Open ${url}/ in a tab. The tab is a client: hide it, focus it, close it. Open ${url}/notes in two
tabs to share notes.`,
      look: 'Contexts and Browser windows of the user visitor, Subscriptions',
    },
  ]
}

const stepHtml = ({ title, text, command, look }) => `<li>
<h3>${escaped(title)}</h3>
<p>${escaped(text)}</p>
${command ? `<pre>${escaped(command)}</pre>` : ''}
<p>In the dashboard: ${escaped(look)}.</p>
</li>`

const pageOf = (tour) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>relayscope demo: tour and questions</title>
<script type="module" src="/questions.mjs"></script>
</head>
<body>
<h1>The demo</h1>
<h2>Tour</h2>
<ol>
${tour.map(stepHtml).join('\n')}
</ol>
<form id="key" hidden><label>Admin key, to see the questions <input type="password" required></label> <button>Show</button></form>
<main id="sections"></main>
</body>
</html>
`

/** The requests and commands that need the key, section by section. `living` are records that exist now. */
function sectionsOf({ host, keyText, clients, notes, control, state }, living) {
  const { diagnostics, guest, deployment } = host
  const [url] = host.urls
  const { client_id, pid } = clients.at(-1)
  const ask = (path, why) =>
    `curl -s -H "X-Admin-Key: ${keyText}" '${diagnostics}${path}'${why === undefined ? '' : `   # ${why}`}`
  const bearer = `-H 'Authorization: Bearer ${control.token}' -H 'Content-Type: application/json'`
  const event = '{"name":"note_changed","data":{"id":null}}'
  const restart = `npm start -- --port ${new URL(url).port} --state '${state}'`
  return [
    {
      title: 'Clients, each a process of its own',
      lines: [...clients, notes].map(({ user_id, client_id, pid }) => `${user_id}/${client_id}  pid ${pid}`),
    },
    {
      title: 'Questions (some ids are of records that end soon: reload for new ones)',
      lines: requestsFor(living, notes).map((path) => ask(path)),
    },
    {
      title: `Break ${client_id}, then ask for delivery, contexts and connections again`,
      lines: [
        `kill -STOP ${pid}   # hangs: attempts without acknowledgement, recoveries, then stale`,
        `kill -CONT ${pid}   # continues with a new instance`,
        `kill -KILL ${pid}   # dies: its commands expire, its connection loses its heartbeat`,
      ],
    },
    {
      title: 'Publish an event to the viewers of the notes, through the control server of the application',
      lines: [`curl -s -X POST ${bearer} -d '${event}' '${control.url}/sites/${notes.site_id}/events'`],
    },
    {
      title: 'Remove a viewer of the notes',
      lines: [`curl -s -X DELETE -H "X-Admin-Key: ${keyText}" '${url}/viewers/${guest}'`],
    },
    ...(deployment
      ? [deploymentOf(deployment), nodeDeathOf(deployment, ask)]
      : [{ title: 'End the demo, start it again, and see the viewers return with a gap', lines: [restart] }]),
  ]
}

const deploymentOf = ({ deploymentId, storePid, nodes, observer }) => ({
  title: `The deployment ${deploymentId}: nodes that share a store, and an observer that only reads`,
  lines: [
    ...nodes.map(({ nodeId, url, pid }) => `node ${nodeId}  pid ${pid}  ${url}`),
    `observer  pid ${observer.pid}`,
    ...(storePid === undefined ? [] : [`redis-server  pid ${storePid}`]),
  ],
})

const nodeDeathOf = ({ nodes: [first, second] }, ask) => ({
  title: `Kill node ${first.nodeId} during its work, and look; ${second.url}/notes has the same notes`,
  lines: [
    `kill -9 ${first.pid}`,
    ask('/connections?status=connected', `within a second all clients are at node ${second.nodeId}`),
    ask('/delivery/nodes', `${first.nodeId} turns stale after 5 s; ${second.nodeId} counts what it delivers`),
    ask('/delivery/summary', 'what is tracked is still delivered: no admitted command is lost'),
  ],
})

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}
const html = (body, type) => new Response(body, { headers: { ...HEADERS, 'content-type': `${type}; charset=utf-8` } })

/**
 * Creates the handler of the page. It returns `undefined` for other paths. `plan` are the arguments of `sectionsOf`; the
 * tour is public, because it has process ids only. Everything else needs the `key`.
 */
export function createQuestions({ key, isReady, signal, ...plan }) {
  const { host, clients } = plan
  async function sections(request) {
    if (request.headers.get('x-admin-key') !== key) return json({ code: 'forbidden' }, 403)
    const until = AbortSignal.any([signal, request.signal])
    const living = await findLiving({ diagnostics: host.diagnostics, key, isReady, signal: until })
    return living ? json({ sections: sectionsOf(plan, living) }) : json({ code: 'unavailable' }, 503)
  }
  return async (request) => {
    const { pathname } = new URL(request.url)
    if (request.method !== 'GET') return undefined
    if (pathname === '/questions') return html(pageOf(tourOf({ clients, url: host.urls[0] })), 'text/html')
    if (pathname === '/questions.mjs')
      return html(await readFile(new URL('page/questions.mjs', import.meta.url), 'utf8'), 'text/javascript')
    return pathname === '/questions.json' ? sections(request) : undefined
  }
}
