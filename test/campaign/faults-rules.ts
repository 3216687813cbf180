/** What must be so whatever happens to nodes and links: each rule by its name, as violations are reported. */

export const RULES = {
  // The life of a command.
  admitted_and_gone: 'an admitted command is nowhere',
  there_though_refused: 'a command or message is there whose every attempt was refused for good',
  rejected_after_admission: 'an admitted command is answered as rejected',
  end_from_nowhere: 'a command ended as nobody and nothing has ended it',
  alive_after_end: 'a command is answered as alive after its end',
  ended_unadmitted: 'an end counted of what was not admitted',
  ended_twice: 'two ends of one command counted',
  end_denied: 'an end did not count, though nothing else had ended the command',
  not_ended: 'an admitted command has not ended',
  stranded: 'a command waited for its deadline though its client was there',
  handed_over_unadmitted: 'what was not admitted was handed over',
  handed_over_twice: 'one attempt was handed over twice',
  handed_over_after_end: 'a command was handed over to a connection made after its end',
  handed_over_after_acknowledgement: 'a command was handed over to a connection made after its acknowledgement',
  attempted_after_acknowledgement: 'an attempt was made after the acknowledgement',
  attempted_after_end: 'an attempt was made after the end',
  attempts_uncounted: 'more attempts were handed over than are counted',
  other_payload: 'something else was handed over than was admitted',
  acknowledged_unseen: 'an acknowledgement counted of what was not handed over',
  acknowledged_after_end: 'an acknowledgement counted after the end',
  acknowledgement_denied: 'an acknowledgement did not count, though command and instance were current',
  acknowledgement_lost: 'an acknowledgement counted and is not there',
  acknowledgement_from_nowhere: 'an acknowledgement is there that nobody gave',
  stale_word: 'the word of an instance counted after another one had connected',
  // The life of a message.
  accepted_and_gone: 'an accepted message is not in the history',
  retained_twice: 'a message is in the history twice',
  new_twice: 'a message was accepted as new twice',
  duplicate_of_nothing: 'a message was called a duplicate and was not there',
  other_content: 'a message is retained with another content',
  stale_accepted: 'a message of an instance was accepted after another one had connected',
  stale_unfounded: 'an instance was called stale and no other had connected',
  sequence_broken: 'the positions of a stream have a hole or a repetition',
  out_of_order: 'a message precedes one that was accepted before it was sent',
  account_differs: 'what is counted of a user is not what is retained of him',
  // The life of an event.
  published_unretained: 'an event was heard and its message is not in the history',
  published_twice: 'one event has two positions',
  position_shared: 'two events have one position',
  lost_without_gap: 'a subscriber missed events and was not told',
  heard_though_denied: 'an event was heard of which every answer says that it was not published',
  published_unheard: 'a published event did not reach a subscriber who was told of no gap',
  // What is left.
  left_tracked: 'the store still tracks commands',
  left_reserved: 'a reservation is left of what has ended',
  ends_miscounted: 'the list of ended commands is not that of the commands that have ended',
  // The nodes, and the history itself.
  died: 'a node ended by itself',
  error: 'a call failed with what is no refusal',
  unread: 'the last read of the store is missing',
  undecided: 'no order was found within the bound',
} as const

export type Rule = keyof typeof RULES

export interface Violation {
  rule: Rule
  /** Which object, and what was seen of it. */
  about: string
}
