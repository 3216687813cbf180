/** The requests that every host must answer with the same bytes, and what those are. */
import { toProblem } from '../../src/internal/http/problem.js'
import { PREFIX } from './subject.js'

export interface Row {
  /** Also the key under which a host declares a difference. */
  name: string
  line: string
  headers?: string[]
  body?: string
  expect: Expectation
}

/** `status: null`: the server closes without a word. `body: null`: whatever the platform says. */
export interface Expectation {
  status: number | null
  body: string | null
  headers?: Record<string, string>
}

const REFUSED: Expectation = {
  status: 400,
  body: JSON.stringify(toProblem('bad_request')),
  headers: { 'content-type': 'application/problem+json' },
}
const FAILED: Expectation = { status: 500, body: 'Internal Server Error\n' }

const echo = (path: string, { method = 'GET', search = '', key = null as string | null } = {}): Expectation => ({
  status: 200,
  body: JSON.stringify({ method, path, search, key }),
})
const NOT_ALLOWED: Expectation = { status: 405, body: '"method not allowed"', headers: { allow: 'GET, HEAD, POST' } }
const ECHO = `${PREFIX}/echo`
const UNSENT = ['Content-Length: 10485760']
const ENDLESS = ['Transfer-Encoding: chunked']

const hosts = (host: string, expect: Expectation): Row => ({
  name: `Host "${host}"`,
  line: `GET ${ECHO}`,
  headers: [`Host: ${host}`],
  expect,
})

const notAllowed = (method: string): Row => ({
  name: `method ${method}`,
  line: `${method} ${ECHO}`,
  expect: NOT_ALLOWED,
})

export const rows: Row[] = [
  {
    name: 'an encoded id and a query',
    line: `GET ${ECHO}/a%2Fb%252F?x=1%20&y`,
    expect: echo('/echo/a%2Fb%252F', { search: '?x=1%20&y' }),
  },
  { name: 'a trailing slash', line: `GET ${ECHO}/`, expect: echo('/echo/') },
  { name: 'a doubled slash inside', line: `GET ${ECHO}//x`, expect: echo('/echo//x') },
  { name: 'malformed percent-encoding', line: `GET ${ECHO}/%ff%ZZ%`, expect: echo('/echo/%ff%ZZ%') },
  {
    name: 'a repeated header',
    line: `GET ${ECHO}`,
    headers: ['X-Admin-Key: a', 'X-Admin-Key: b'],
    expect: echo('/echo', { key: 'a, b' }),
  },
  {
    name: 'two cookies',
    line: `GET ${PREFIX}/cookies`,
    expect: { status: 200, body: '"two"', headers: { 'set-cookie': 'a=1; Path=/|b=2; Path=/' } },
  },
  { name: 'HEAD', line: `HEAD ${ECHO}`, expect: { status: 200, body: '' } },
  { name: 'no content', line: `GET ${PREFIX}/empty`, expect: { status: 204, body: '' } },
  {
    name: 'a body that is read',
    line: `POST ${PREFIX}/read`,
    headers: ['Content-Type: application/json', 'Content-Length: 13'],
    body: '{"some":"id"}',
    expect: { status: 200, body: '13' },
  },
  {
    name: 'a body without a length that is read',
    line: `POST ${PREFIX}/read`,
    headers: ENDLESS,
    body: '5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n',
    expect: { status: 200, body: '11' },
  },
  { name: 'GET with a body that never comes', line: `GET ${ECHO}`, headers: UNSENT, expect: echo('/echo') },
  {
    name: 'GET with an endless body',
    line: `GET ${ECHO}`,
    headers: ENDLESS,
    body: '1\r\na\r\n',
    expect: echo('/echo'),
  },
  {
    name: 'POST with a body that never comes',
    line: `POST ${ECHO}`,
    headers: [...UNSENT, 'Content-Type: application/json', 'Content-Encoding: gzip'],
    expect: echo('/echo', { method: 'POST' }),
  },
  {
    name: 'POST with an endless body',
    line: `POST ${ECHO}`,
    headers: ENDLESS,
    body: '1\r\na\r\n',
    expect: echo('/echo', { method: 'POST' }),
  },
  ...['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE', 'CONNECT', 'get'].map(notAllowed),
  { name: 'a handler that throws', line: `GET ${PREFIX}/throw`, expect: FAILED },
  { name: 'a handler that rejects', line: `GET ${PREFIX}/reject`, expect: FAILED },
  { name: 'a handler that answers nothing', line: `GET ${PREFIX}/nothing`, expect: FAILED },
  { name: 'target /\\', line: 'GET /\\evil.test/x', expect: REFUSED },
  { name: 'target with a backslash', line: `GET ${PREFIX}\\echo`, expect: REFUSED },
  { name: 'target with a fragment', line: `GET ${ECHO}#x`, expect: REFUSED },
  { name: 'target in absolute form', line: `GET http://evil.test${ECHO}`, expect: REFUSED },
  { name: 'target with raw bytes', line: `GET ${ECHO}/\xc3\xa9`, expect: { status: 400, body: null } },
  hosts('evil.test', echo('/echo')),
  hosts(`localhost${ECHO}?`, REFUSED),
  hosts('localhost#', REFUSED),
  hosts('user@localhost', REFUSED),
  hosts('[::1', REFUSED),
  hosts('x:99999', REFUSED),
  hosts('', REFUSED),
  { name: 'two Hosts', line: `GET ${ECHO}`, headers: ['Host: a', 'Host: b'], expect: REFUSED },
]
