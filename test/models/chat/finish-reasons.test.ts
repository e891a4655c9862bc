import { expect, test } from 'vitest'
import { readFinishMeaning, readFinishReason } from '../../../src/models/chat/finish-reasons.ts'

/** The finish reasons of vendors and servers, as they send them. */
const reasons = {
  stop:
    'stop STOP stopped stop_sequence stop_token stop_word word end_turn turn_end end eos eos_token eos_found stopped_eos eosFound stopStringFound stop_sequence_reached hit_eos ended </s> REASON_STOP ' +
    'endoftext end_of_turn end_of_sequence end_of_token eot complete COMPLETE completed completion done finish finished ' +
    'final_answer normal natural success succeeded ok tool_calls tool_call TOOL_CALL tool_use function_call function_calls ' +
    'load unload FINISH_REASON_STOP FinishReason.STOP <|eot_id|> im_end end_of_message',
  cut:
    'length max_tokens MAX_TOKENS max_output_tokens max_new_tokens max_completion_tokens max_length max_len max_time ' +
    'max_generated_tokens max_tokens_reached max_output_tokens_reached model_length model_context_window_exceeded ' +
    'context_window_exceeded context_length_exceeded context_length context_window context_limit token_limit ' +
    'token_limit_reached length_limit limit output_limit output_limit_reached num_predict truncated truncation ' +
    'stopped_limit stop_limit pause_turn compaction max_tool_calls token_budget too_many_tokens ran_out_of_tokens maxPredictedTokensReached pause FinishReason.MAX_TOKENS',
  contentfilter:
    'content_filter content_filtered filtered filter SAFETY RECITATION BLOCKLIST blocked PROHIBITED_CONTENT SPII IMAGE_SAFETY ' +
    'LANGUAGE IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION refusal refused sensitive ERROR_TOXIC guardrail guardrail_intervened ' +
    'guardrails MODEL_ARMOR moderation policy_violation copyright OTHER',
  failed:
    'error failed failure ERROR_LIMIT insufficient_system_resource network_error MALFORMED_FUNCTION_CALL malformed_tool_call ' +
    'malformed_tool_use malformed_model_output invalid_tool_call invalid_function_call UNEXPECTED_TOOL_CALL ' +
    'TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE cancelled canceled USER_CANCEL abort aborted timeout ' +
    'timed_out time_limit deadline server_exit shutdown preempted engine_error internal_error server_error upstream_error ' +
    'overloaded engine_overloaded unavailable rate_limit rate_limited interrupted disconnected connection_refused NO_IMAGE IMAGE_OTHER ' +
    'expired out_of_memory oom crashed killed function_call_filter:MALFORMED_FUNCTION_CALL',
  none: 'null none FINISH_REASON_UNSPECIFIED queued in_progress incomplete generating running not_finished',
  unknown: 'because user_stop repetition 停止',
}

test.each(Object.entries(reasons))('of the meaning %s are known', (meaning, names) => {
  const read = names.split(' ').map((name) => [name, readFinishMeaning(name)])
  expect(read).toEqual(names.split(' ').map((name) => [name, meaning]))
})

test('that no vendor would send after its last event are none', () => {
  expect([null, '', ' ', false, 1, {}, 'in_progress'].map(readFinishReason)).toEqual(Array(7).fill(null))
  expect([true, 'stop'].map(readFinishReason)).toEqual(['stop', 'stop'])
})
