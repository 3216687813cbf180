/** What the host prints of a deployment of several nodes: who is who, and what to see when one of them is killed. */

export function announceDeployment({ deploymentId, storePid, nodes, observer, diagnostics, keyText }) {
  const [first, second] = nodes
  const ask = (path, why) => `  curl -s -H "X-Admin-Key: ${keyText}" '${diagnostics}${path}'   # ${why}`
  return [
    '',
    `deployment ${deploymentId}, whose nodes share a store; the diagnostics above are those of the observer, no part of it:`,
    ...nodes.map(({ nodeId, url, pid }) => `  node ${nodeId}  pid ${pid}  ${url}`),
    `  observer  pid ${observer.pid}`,
    ...(storePid === undefined ? [] : [`  redis-server  pid ${storePid}`]),
    '',
    `kill node ${first.nodeId} in the middle of its work:`,
    `  kill -9 ${first.pid}`,
    'and look:',
    ask('/connections?status=connected', `within a second all clients are at node ${second.nodeId}`),
    ask('/delivery/nodes', `${first.nodeId} turns stale after 5 s; ${second.nodeId} counts what it delivers`),
    ask('/delivery/summary', 'what is tracked is still delivered: no admitted command is lost'),
    `  open ${second.url}/notes: the same notes, and what is published reaches every node`,
  ]
}
