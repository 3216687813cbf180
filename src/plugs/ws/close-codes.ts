/** The close codes of WebSocket as the names that a registry keeps for why a connection went. */

/** As RFC 6455 and its registry name them. */
const NAMES: Readonly<Record<number, string>> = {
  1000: 'normal_closure',
  1001: 'going_away',
  1002: 'protocol_error',
  1003: 'unsupported_data',
  1005: 'no_status_received',
  1006: 'abnormal_closure',
  1007: 'invalid_payload',
  1008: 'policy_violation',
  1009: 'message_too_big',
  1010: 'mandatory_extension',
  1011: 'internal_error',
  1012: 'service_restart',
  1013: 'try_again_later',
  1014: 'bad_gateway',
  1015: 'tls_handshake',
}

/** A code of a library or an application has no name but its number. */
export const reasonOf = (code: number): string => NAMES[code] ?? `close_${code}`
