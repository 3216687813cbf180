/** What the host prints: where it is, who works for it, questions to paste, and ways to break it. */
import { announceDeployment } from './announce-deployment.mjs'

/** Every question that the router answers, with ids of things that are there now. */
function questions({ connection, context, command, correlation_id, message }, notes) {
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
    '/users',
    `/users/${at(user_id)}/summary`,
    '/actions',
    `/connections?${query({ user_id })}`,
    '/connections/count',
    '/connections/churn',
    `/connections/${at(connection_id)}`,
    `/connections/${at(connection_id)}/history`,
    '/history/streams',
    `/history/messages?${query({ stream: message.stream, limit: 5 })}`,
    '/rpc/summary',
    '/rpc/pending',
    `/rpc/pending/${at(correlation_id)}`,
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
    `/delivery/status?${query(command)}`,
    '/sites',
    `/sites/${at(notes.site_id)}`,
    '/sessions',
    `/sessions/${at(notes.session_id)}`,
    '/subscriptions?order=slowest',
  ]
}

/** The cooperative application: where to look, how to say that something has changed, how to throw a viewer out. */
function cooperation({ url, guest, keyText, notes, control }) {
  const json = `-H 'Authorization: Bearer ${control.token}' -H 'Content-Type: application/json'`
  const event = `{"name":"note_changed","data":{"id":null}}`
  return [
    `shared notes: open ${url}/notes in two tabs, add a note in one and see the other follow`,
    'publish from any program of this machine, through the control server of the application:',
    `  curl -s -X POST ${json} -d '${event}' '${control.url}/sites/${notes.site_id}/events'`,
    'throw a viewer out:',
    `  curl -s -X DELETE -H "X-Admin-Key: ${keyText}" '${url}/viewers/${guest}'`,
  ]
}

const again = (url, state) => [
  'end the host, start it again, and see the viewers come back with a gap:',
  `  npm start -- --port ${new URL(url).port} --state '${state}'`,
]

/** Says at once what is going on and where to look first: building, starting and the first work take their time. */
export function announceFirst({ urls, diagnostics }, key) {
  // The page takes the key out of the address bar; one that came from outside is not shown, and the page asks for it.
  const fragment = key === undefined ? '' : `#key=${encodeURIComponent(key)}`
  console.log(`relayscope live host: open ${new URL('/dashboard/', diagnostics)}${fragment} in a browser and look`)
  console.log(`open ${urls[0]}/ to join as a client`)
  console.log('its clients are starting; questions to ask follow when they are at work')
}

/** Prints everything else. `keyText` replaces the administrator's key in the printed commands. */
export function announce({ host, keyText, clients, notes, control, state, living }) {
  const { diagnostics, guest, deployment } = host
  const [url] = host.urls
  const who = [...clients, notes].map(({ user_id, client_id, pid }) => `  ${user_id}/${client_id}  pid ${pid}`)
  const ask = questions(living, notes).map((path) => `  curl -s -H "X-Admin-Key: ${keyText}" '${diagnostics}${path}'`)
  const { client_id, pid } = clients.at(-1)
  console.log(
    [
      '',
      `diagnostics: ${diagnostics}`,
      `admin key: ${keyText}`,
      '',
      'clients, each a process of its own:',
      ...who,
      '',
      'ask (some ids are of things that soon end; run again for new ones):',
      ...ask,
      '',
      ...cooperation({ url, guest, keyText, notes, control }),
      ...(deployment ? [] : again(url, state)),
      '',
      `break ${client_id}, then ask for delivery, contexts and connections again:`,
      `  kill -STOP ${pid}   # hangs: attempts without acknowledgement, recoveries, then stale`,
      `  kill -CONT ${pid}   # comes back with a new instance`,
      `  kill -KILL ${pid}   # dies: its commands expire, its connection loses its heartbeat`,
      ...(deployment ? announceDeployment({ ...deployment, diagnostics, keyText }) : []),
      '',
      'end with Ctrl-C',
    ].join('\n'),
  )
}
