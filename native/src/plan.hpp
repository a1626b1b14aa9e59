// What a plan holds, as the library's own runtime says once it has loaded it.
#pragma once
#include "listeners.hpp"
#include "request.hpp"

namespace trtforge {

// Needs a GPU the plan was built for. Throws TF_BUILDER_UNAVAILABLE, TF_PLAN_LOAD_FAILED with the library's last lines.
PlanFacts inspectPlan(const InspectRequest& request, Listener& listener);

}  // namespace trtforge
