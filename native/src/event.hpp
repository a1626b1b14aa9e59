// What a job reports to JavaScript while it works.
#pragma once
#include <string>

namespace trtforge {

struct Event {
  enum class Type { kLog, kPhaseStart, kStep, kInside, kPhaseEnd } type;
  std::string text;  // message or phase
  int number = 0;    // severity, number of steps, or the step
  int steps = 0;     // of kInside: how many the inner phase has

  static constexpr int kNoStep = -1;
  static Event log(int severity, const char* message) { return {Type::kLog, message, severity}; }
  static Event phaseStart(const char* phase, int steps) { return {Type::kPhaseStart, phase, steps}; }
  static Event step(const char* phase, int step) { return {Type::kStep, phase, step}; }
  // A phase within the one that is reported, at its start (kNoStep) or after a step.
  static Event inside(const char* phase, int step, int steps) { return {Type::kInside, phase, step, steps}; }
  static Event phaseEnd(const char* phase) { return {Type::kPhaseEnd, phase}; }
};

}  // namespace trtforge
